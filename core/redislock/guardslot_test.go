package redislock

import (
	"strings"
	"testing"
)

func TestTheGuardsMemoryIsInTheSlotOfTheKey(t *testing.T) {
	t.Parallel()
	for key, hashed := range map[string]string{ // what the Cluster specification hashes of the key
		"order:42": "order:42", "{user:1}:orders": "user:1", "a{b}c{d}": "b", "a{b{c}d": "b{c", "x}{y}": "y", "ü": "ü",
	} {
		tag, err := hashTag(key)
		if err != nil || tag != hashed {
			t.Errorf("%q: %q, %v; want %q", key, tag, err, hashed)
		}
		side := "{" + tag + "}:v1:seen:" + key
		_, rest, _ := strings.Cut(side, "{")
		if inside, _, _ := strings.Cut(rest, "}"); slot(inside) != slot(hashed) {
			t.Errorf("%q is not in the slot of %q", side, key)
		}
	}
}
