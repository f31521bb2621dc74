package redislock

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestSlotsAreThoseOfTheClusterSpecification(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{ // from redis-server's CLUSTER KEYSLOT
		"123456789": 12739, "": 0, "foo": 12182, "holdfast:order:42": 13308, "ü": 9552,
	} {
		if got := slot(key); got != want {
			t.Errorf("slot of %q: %d, not %d", key, got, want)
		}
	}
}

func TestInClusterTheFenceCounterIsInTheSlotOfTheName(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer func() { _ = rdb.Close() }()
	for _, prefix := range []string{"holdfast:", ""} {
		f := newFences(rdb, prefix)
		for _, name := range []string{"a", "order:42", "ü", "x:y:z"} {
			key := f.key(name)
			tag := key[1 : len(key)-len("}:v1:fence")]
			if slot(tag) != slot(prefix+name) || key[0] != '{' || len(tag) < len(prefix) || tag[:len(prefix)] != prefix {
				t.Errorf("counter %q for %q", key, name)
			}
		}
	}
}
