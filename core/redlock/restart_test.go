package redlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// Its holder does not renew. So nothing but the rule keeps servers that have forgotten it from granting the name again.
func TestServersThatForgetGrantNothingUntilTheLongestTTLIsOver(t *testing.T) {
	t.Parallel()
	const longest = 2 * time.Second
	servers := five(t)
	store := func() *redlock.Store {
		nodes := make([]driver.Driver, len(servers))
		for i, s := range servers {
			rdb := redis.NewClient(&redis.Options{
				Addr: s.Addr(), OnConnect: redislock.RestartRule(longest), MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			t.Cleanup(func() { _ = rdb.Close() })
			nodes[i] = redislock.New(rdb)
		}
		s := redlock.New(nodes, redlock.WithFence())
		t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
		return s
	}
	holder, other := store(), store()
	acquire := func(s *redlock.Store, token string) (driver.Grant, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return s.Acquire(ctx, driver.Claim{Name: "name", Token: token, TTL: longest})
	}
	var first driver.Grant
	var granted time.Time
	eventually(t, "servers that are new are used", func() bool {
		var err error
		granted = time.Now()
		first, err = acquire(holder, "token-0000000000000001")
		return err == nil
	})
	var all sync.WaitGroup
	for _, s := range servers {
		all.Go(func() { s.Kill(); s.RestartEmpty() })
	}
	all.Wait()
	var second driver.Grant
	eventually(t, "they are used again", func() bool {
		var err error
		if second, err = acquire(other, "token-0000000000000002"); err == nil && time.Since(granted) < longest {
			t.Fatal("two holders")
		}
		return err == nil
	})
	if second.Fence <= first.Fence {
		t.Errorf("fence %d after %d", second.Fence, first.Fence)
	}
}
