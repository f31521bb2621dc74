package backendtest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Contention is names that several goroutines take in turn, again and again, while a test breaks or changes servers.
type Contention struct {
	t              *testing.T
	turns, refused atomic.Int64 // leases that were had; calls that found the service unavailable
	cancel         context.CancelFunc
	workers        sync.WaitGroup
}

// contended is a name, and what its holders see.
type contended struct {
	name   string
	inside atomic.Int32
	fence  atomic.Uint64 // of the last holder
}

// Contend has a goroutine for each of the lockers contend for each of the names, until [Contention.End], or the end of the
// test. The test fails if two hold a name, or if its fences do not grow. That the lock service is unavailable, or has lost a
// lease, is no failure.
func Contend(t *testing.T, names []string, lockers []*core.Locker, opts ...core.Option) *Contention {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	c := &Contention{t: t, cancel: cancel}
	t.Cleanup(func() { c.End() })
	for _, name := range names {
		one := &contended{name: name}
		for _, locks := range lockers {
			c.workers.Go(func() {
				for ctx.Err() == nil {
					c.turn(ctx, locks, one, opts)
				}
			})
		}
	}
	return c
}

func (c *Contention) turn(ctx context.Context, locks *core.Locker, on *contended, opts []core.Option) {
	x, err := locks.Acquire(ctx, on.name, opts...)
	if err != nil {
		if errors.Is(err, core.ErrUnavailable) && ctx.Err() == nil {
			c.refused.Add(1)
		} else if ctx.Err() == nil {
			c.t.Errorf("%s: %v", on.name, err)
		}
		return
	}
	if n, last := on.inside.Add(1), on.fence.Swap(x.Fence()); n != 1 || last >= x.Fence() {
		c.t.Errorf("%s: %d holders; fence %d after %d", on.name, n, x.Fence(), last)
	}
	select { // the work
	case <-time.After(5 * time.Millisecond): // many turns, and processors for other tests
	case <-x.Context().Done():
	}
	on.inside.Add(-1)
	c.turns.Add(1)
	err = x.Release(context.WithoutCancel(ctx))
	if err != nil && !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrLost) {
		c.t.Errorf("%s: %v", on.name, err)
	}
}

// GoOn waits until there have been more turns. It fails the test if that does not happen.
func (c *Contention) GoOn(what string) {
	c.t.Helper()
	before := c.turns.Load()
	const failover = 2 * time.Minute // a name whose release it has forgotten is free after a TTL
	Within(c.t, failover, "others get the names: "+what, func() bool { return c.turns.Load() >= before+10 })
}

// End ends the contention, and returns once nobody holds the names. It says how many calls found the service unavailable.
func (c *Contention) End() (refused int64) {
	c.cancel()
	c.workers.Wait()
	return c.refused.Load()
}
