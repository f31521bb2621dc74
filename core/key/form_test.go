package key

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

func TestAListHasTemplatesWithASourceAndOneSpaceBetween(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]int{
		"order:{id|int}": 1, "jobs:nightly": 1, "account:{from|int} account:{to|int}": 2, "{a} {b} {c}": 3,
		"": 0, " ": 0, "a:{x}  b:{y}": 0, " a:{x}": 0, "a:{x} ": 0, "a:{x}\tb:{y}": 0, "a:{x}\nb:{y}": 0,
		"order: {id}": 0, "order:{id} nightly": 0, "a:{x} a:{x}": 0, "a:{x} b:{y": 0,
	} {
		all, err := ParseAll(list)
		if len(all) != want || (err == nil) != (want > 0) || err != nil && !errors.Is(err, invalid.Err) {
			t.Errorf("%q: %v, %v", list, all, err)
		}
	}
}

// The same number is the same name, and another number is another one.
func FuzzIntIsANumber(f *testing.F) {
	for _, v := range []string{
		"42", "042", "+42", "-42", "-0", "00", "", "+", "-", "+-1", "1-", "1_0", "0x10", "4.0", "\n42", "4 2", "٤٢", "a",
		strings.Repeat("9", 40), strings.Repeat("0", 300) + "7",
	} {
		f.Add(v)
	}
	digits := regexp.MustCompile(`^[+-]?\d+$`)
	f.Fuzz(func(t *testing.T, value string) {
		got, err := canonicalInt(value)
		if is := digits.MatchString(value); is != (err == nil) {
			t.Fatalf("%q: %q, %v", value, got, err)
		}
		if err != nil {
			return
		}
		n, _ := new(big.Int).SetString(value, 10)
		if got != n.String() {
			t.Fatalf("%q: %q, want %q", value, got, n)
		}
	})
}
