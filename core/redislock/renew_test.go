package redislock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// claims are n that the store has granted.
func claims(tb testing.TB, store *redislock.Store, n int) []driver.Claim {
	tb.Helper()
	many := make([]driver.Claim, n)
	for i := range many {
		c := driver.Claim{Name: fmt.Sprintf("name-%d", i), Token: fmt.Sprintf("%022d", i), TTL: 10 * time.Second}
		if _, err := store.Acquire(tb.Context(), c); err != nil {
			tb.Fatal(err)
		}
		many[i] = c
	}
	return many
}

func TestARenewalGivesEachNameItsOwnTTL(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	store := redislock.New(rdb, redislock.WithPrefix(share.Prefix))
	many := claims(t, store, 4)
	ttls := []time.Duration{time.Minute, 0, time.Hour, time.Minute}
	for i, ttl := range ttls {
		many[i].TTL = ttl
	}
	many[3].Token = fmt.Sprintf("%022d", 7) // somebody else's
	errs := store.Renew(t.Context(), many)
	ok(t, errors.Join(errs[:3]...))
	is(t, errs[3], driver.ErrNotOwner)
	ttls[1], ttls[3] = 10*time.Second, 10*time.Second // as they were
	for i, ttl := range ttls {
		if left := rdb.PTTL(t.Context(), share.Prefix+many[i].Name).Val(); left > ttl || left < ttl/2 {
			t.Errorf("%s: %s left of %s", many[i].Name, left, ttl)
		}
	}
}

// BenchmarkRenew is one command for 128 leases.
func BenchmarkRenew(b *testing.B) {
	share := shared.Use(b)
	store := redislock.New(dial(b, &redis.Options{Addr: share.Addr}), redislock.WithPrefix(share.Prefix))
	many := claims(b, store, 128)
	b.ReportAllocs()
	for b.Loop() {
		if err := errors.Join(store.Renew(b.Context(), many)...); err != nil {
			b.Fatal(err)
		}
	}
}
