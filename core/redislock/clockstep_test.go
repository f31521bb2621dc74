package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// newStepped is a world whose server's clock can be set.
func newStepped(t *testing.T) (w *world, step func(ahead time.Duration)) {
	t.Helper()
	server, step := servers.RedisWithClock(t)
	w = worldOf(t, server)
	for _, l := range []**core.Locker{&w.locks, &w.other} {
		// Much shorter than the TTL, so that what ends a lease is not the end of its trust.
		locks, err := (*l).With(core.WithTTL(clusterTTL), core.WithRenewEvery(ttl/10))
		ok(t, err)
		*l = locks
	}
	return w, step
}

// What the server takes for over is over: its clock is one that counts. The holder is told at
// its next renewal, and stale fences are refused.
func TestAServerClockThatStepsForwardEndsLeasesAndTheirHoldersHear(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	w, step := newStepped(t)
	x, read := acquire(t, w.other, "name"), acquire(t, w.other, "read", core.WithShared())
	waiting := w.waits(t, w.locks)
	step(time.Hour)
	for _, lost := range []*core.Lease{x, read} {
		<-lost.Context().Done()
		if loss, _ := errors.AsType[*core.LostError](lost.Err()); loss == nil || loss.Reason != core.ReasonTaken {
			t.Errorf("%v, and not by what a renewal was told", lost.Err())
		}
		is(t, lost.Release(t.Context()), core.ErrLost)
	}
	y := <-waiting
	grows(t, y.Fence(), x.Fence())
	step(0) // and back, under the next lease
	w.staysAndGrows(t, y)
}

// Nobody's trust grows with what the server keeps for longer.
func TestAServerClockThatStepsBackLetsNobodyElseIn(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	w, step := newStepped(t)
	x := acquire(t, w.other, "name")
	orphan := acquire(t, w.other, "orphan", core.WithTTL(ttl), core.WithoutRenewal())
	waiting := w.waits(t, w.locks)
	step(-time.Hour)

	<-orphan.Context().Done() // by its own clock
	is(t, orphan.Err(), core.ErrLost)
	for _, name := range []string{"orphan", "name"} { // an hour longer than its TTL
		_, err := w.locks.TryAcquire(t.Context(), name)
		is(t, err, core.ErrHeld)
	}
	if left := w.direct.PTTL(t.Context(), w.key("orphan")).Val(); left < time.Hour/2 {
		t.Errorf("the orphan lives for %v", left)
	}
	ok(t, x.Release(t.Context()))
	y := <-waiting // at once: a release is no matter of clocks
	grows(t, y.Fence(), x.Fence())
	w.staysAndGrows(t, y)

	step(0)
	z := acquire(t, w.locks, "orphan", core.WithWait(clusterTTL))
	grows(t, z.Fence(), orphan.Fence())
	ok(t, z.Release(t.Context()))
}

// staysAndGrows has y renewed and released, and looks at the fences that follow.
func (w *world) staysAndGrows(t *testing.T, y *core.Lease) {
	t.Helper()
	lasts(t, y)
	_, err := w.other.TryAcquire(t.Context(), y.Name())
	is(t, err, core.ErrHeld)
	last := y.Fence()
	ok(t, y.Release(t.Context()))
	for range 100 {
		x := acquire(t, w.other, y.Name())
		grows(t, x.Fence(), last)
		last = x.Fence()
		ok(t, x.Release(t.Context()))
	}
}

// The line's members are dead at times of the server's clock: after a step back they would live
// for as long as the step is.
func TestADeadWaiterHoldsNobodyUpAfterTheServersClockStepsBack(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	w, step := newStepped(t)
	x := acquire(t, w.other, "name")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := w.locks.Acquire(ctx, "name")
		gone <- err
	}()
	w.lineUp(t, 1)
	w.proxy.BlackHole(true) // as if its process were killed
	step(-time.Hour)
	if info := known(t, w.store(t), "name"); len(info.Line) != 1 || info.Line[0].Alive {
		t.Errorf("the line is %+v", info.Line)
	}
	ok(t, x.Release(t.Context()))
	ok(t, acquire(t, w.other, "name", core.WithWait(clusterTTL)).Release(t.Context()))
	cancel()
	is(t, <-gone, core.ErrHeld) // as it was when it was last heard of
	w.proxy.Heal()
}
