package redlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// Its holder does not renew. So nothing but the rule keeps servers that have forgotten it from granting the name again.
func TestServersThatForgetGrantNothingUntilTheLongestTTLIsOver(t *testing.T) {
	t.Parallel()
	const longest = 2 * time.Second
	nodes := five(t)
	store := func() *redlock.Store {
		drivers := make([]driver.Driver, len(nodes))
		for i, s := range nodes {
			drivers[i] = redislock.New(dial(t, s.Addr(), func(o *redis.Options) { o.OnConnect = redislock.RestartRule(longest) }))
		}
		s := redlock.New(drivers, redlock.WithFence())
		t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
		return s
	}
	var granted time.Time
	acquire := func(what string, s *redlock.Store, token string) (g driver.Grant) {
		t.Helper()
		eventually(t, what, func() bool {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var err error
			if g, err = s.Acquire(ctx, driver.Claim{Name: "name", Token: token, TTL: longest}); err != nil {
				return false
			}
			if time.Since(granted) < longest {
				t.Fatal("two holders")
			}
			granted = began
			return true
		})
		return g
	}
	holder, other := store(), store()
	first := acquire("servers that are new are used", holder, "token-0000000000000001")
	var all sync.WaitGroup
	for _, s := range nodes {
		all.Go(func() { s.Kill(); s.RestartEmpty() })
	}
	all.Wait()
	second := acquire("they are used again", other, "token-0000000000000002")
	backendtest.Grows(t, second.Fence, first.Fence)
}
