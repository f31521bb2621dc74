package redislock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// Claims that a frozen server, or the network, has kept for longer than their callers have waited
// are executed after all, and so are the clean-ups behind them, in any order.
func TestAClaimThatIsExecutedLateIsGivenBack(t *testing.T) {
	t.Parallel()
	for what, keep := range map[string]func(w *world) (let func()){
		"a frozen server": func(w *world) func() { w.server.Pause(); return w.server.Resume },
		"a slow network":  func(w *world) func() { return w.proxy.Hold() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			const names, long = 16, 20 * time.Second
			w := newWorld(t)
			var calls sync.WaitGroup
			for i := range names {
				name := fmt.Sprint("late-", i)
				ok(t, acquire(t, w.locks, name).Release(t.Context())) // quick: claims go out on their callers' goroutines
			}
			w.do(t, "config", "resetstat")
			let := keep(w)
			for i := range names {
				calls.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					defer cancel()
					_, err := w.locks.TryAcquire(ctx, fmt.Sprint("late-", i), core.WithTTL(long))
					is(t, err, core.ErrUnavailable)
				})
			}
			calls.Wait()
			let()
			eventually(t, "a claim was executed late, and given back", func() bool {
				return strings.Contains(w.direct.Info(t.Context(), "commandstats").Val(), "cmdstat_del:")
			})
			began := time.Now()
			other := locker(t, dial(t, &redis.Options{Addr: w.server.Addr()}))
			for i := range names {
				ctx, cancel := context.WithTimeout(t.Context(), long/2)
				x, err := other.Acquire(ctx, fmt.Sprint("late-", i))
				cancel()
				ok(t, err)
				ok(t, x.Release(t.Context()))
			}
			t.Logf("all are free after %s", time.Since(began))
		})
	}
}
