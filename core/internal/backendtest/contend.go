package backendtest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// Contention is a name that several goroutines take in turn, again and again, while a test breaks servers.
type Contention struct {
	t       *testing.T
	inside  atomic.Int32
	turns   atomic.Int32
	last    atomic.Uint64 // fence
	cancel  context.CancelFunc
	workers sync.WaitGroup
}

// Contend has two goroutines for each of the lockers contend for a name, until [Contention.End]: so one of them is
// always acquiring. It fails the test if two hold it, or if fences do not grow. That the lock service is unavailable is
// no failure.
func Contend(t *testing.T, name string, lockers []*core.Locker, opts ...core.Option) *Contention {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &Contention{t: t, cancel: cancel}
	for i := range 2 * len(lockers) {
		c.workers.Go(func() {
			for ctx.Err() == nil {
				c.turn(ctx, lockers[i%len(lockers)], name, opts)
			}
		})
	}
	return c
}

func (c *Contention) turn(ctx context.Context, locks *core.Locker, name string, opts []core.Option) {
	x, err := locks.Acquire(ctx, name, opts...)
	if err != nil {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, core.ErrUnavailable) {
			c.t.Error(err)
		}
		return
	}
	if c.inside.Add(1) != 1 || c.last.Swap(x.Fence()) >= x.Fence() {
		c.t.Errorf("two holders, or fences that do not grow: %d", x.Fence())
	}
	c.turns.Add(1)
	c.inside.Add(-1)
	_ = x.Release(context.WithoutCancel(ctx)) // what cannot be confirmed ends with its TTL
}

// GoOn waits until the name has been taken a few times more. It fails the test if that does not happen.
func (c *Contention) GoOn(what string) {
	c.t.Helper()
	before := c.turns.Load()
	Eventually(c.t, "others get the name: "+what, func() bool { return c.turns.Load() > before+3 })
}

// End ends the contention, and returns once nobody holds the name.
func (c *Contention) End() {
	c.cancel()
	c.workers.Wait()
}

// LeadersDie kills the leader of some members twice, in mid-acquire. It costs time: the lease stands, and one after the
// other gets another name.
func LeadersDie(t *testing.T, lockers []*core.Locker, steady *core.Lease, leader func() *servers.Server, contended ...core.Option) {
	t.Helper()
	contention := Contend(t, "contended", lockers, contended...)
	defer contention.End()
	for range 2 {
		dead := leader()
		contention.GoOn("before the leader is killed")
		dead.Kill()
		contention.GoOn("under another leader")
		Renewed(t, steady)
		dead.Restart()
	}
	contention.End()
	OK(t, steady.Release(t.Context()))
}
