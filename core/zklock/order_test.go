package zklock

import (
	"slices"
	"testing"
)

func TestSeatsAreInTheOrderOfTheirCreation(t *testing.T) {
	t.Parallel()
	for _, want := range [][]string{
		{"write-ff-0000000001", "write-00-0000000002", "write-aa-0000000010"},
		{"_c_aa-lock-0000000001", "write-aa-0000000002"},
		{"write-ff-2147483646", "write-ee-2147483647", "write-aa--2147483648", "write-00--2147483647"},
		{"write-aa--000000002", "write-aa--000000001", "write-aa-0000000000", "write-aa-0000000001"},
		{"a", "b", "write-aa-0000000000"},
		{"leases", "write-aa-0000000000"},
	} {
		got := slices.Clone(want)
		slices.Reverse(got)
		slices.SortFunc(got, before)
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
}
