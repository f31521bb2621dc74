package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// traffic is what contends for some names while their servers change.
type traffic struct {
	turns, refused atomic.Int64 // leases that were had; calls that found the service unavailable
	stop           context.CancelFunc
	workers        sync.WaitGroup
}

// contended is a name, and what its holders see.
type contended struct {
	name   string
	inside atomic.Int32
	fence  atomic.Uint64 // of the last holder
}

// contend has Lockers contend for names until the traffic is ended, at the latest with the test. The test fails
// if a name ever has two holders, or a fence that is not larger than the last one.
func contend(t *testing.T, names []string, lockers ...*core.Locker) *traffic {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &traffic{stop: stop}
	for _, name := range names {
		c := &contended{name: name}
		for _, locks := range lockers {
			w.workers.Go(func() {
				for ctx.Err() == nil {
					w.turn(ctx, t, locks, c)
				}
			})
		}
	}
	t.Cleanup(w.end)
	return w
}

func (w *traffic) turn(ctx context.Context, t *testing.T, locks *core.Locker, c *contended) {
	t.Helper()
	x, err := locks.Acquire(ctx, c.name)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			_ = x.Release(context.WithoutCancel(ctx))
		}
		return
	case errors.Is(err, core.ErrUnavailable):
		w.refused.Add(1)
		return
	case err != nil:
		t.Errorf("%s: %v", c.name, err)
		return
	}
	if n := c.inside.Add(1); n != 1 {
		t.Errorf("%s: %d holders", c.name, n)
	}
	if last := c.fence.Swap(x.Fence()); last >= x.Fence() {
		t.Errorf("%s: fence %d after %d", c.name, x.Fence(), last)
	}
	select { // the work
	case <-time.After(5 * time.Millisecond): // many turns, and processors for other tests
	case <-x.Context().Done():
	}
	c.inside.Add(-1)
	w.turns.Add(1)
	err = x.Release(context.WithoutCancel(ctx))
	if err != nil && !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrLost) {
		t.Errorf("%s: %v", c.name, err)
	}
}

// flows waits until there have been more turns.
func (w *traffic) flows(t *testing.T) {
	t.Helper()
	before := w.turns.Load()
	const failover = 2 * time.Minute // a name whose release it has forgotten is free after a TTL
	within(t, failover, fmt.Sprint("20 more turns after ", before), func() bool { return w.turns.Load() >= before+20 })
}

// undisturbed ends the traffic, and fails the test if any call found the service unavailable.
func (w *traffic) undisturbed(t *testing.T) {
	t.Helper()
	w.end()
	if n := w.refused.Load(); n > 0 {
		t.Errorf("%d calls found the service unavailable", n)
	}
}

func (w *traffic) end() {
	w.stop()
	w.workers.Wait()
}
