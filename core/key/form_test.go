package key

import (
	"errors"
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
