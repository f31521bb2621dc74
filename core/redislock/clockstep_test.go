package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// stepped is a server whose wall clock can be set, and two processes that use it, the other one behind a proxy.
type stepped struct {
	place
	step         func(ahead time.Duration)
	proxy        *faultproxy.Proxy
	locks, other *core.Locker
}

func newStepped(t *testing.T) *stepped {
	t.Helper()
	server, step := servers.RedisWithClock(t)
	s := &stepped{place: place{server.Addr(), "holdfast:", dial(t, &redis.Options{Addr: server.Addr()})}, step: step, proxy: faultproxy.New(t, server.Addr())}
	for l, addr := range map[**core.Locker]string{&s.locks: s.addr, &s.other: s.proxy.Addr()} {
		// Much shorter than the TTL, so that what ends a lease is not the end of its trust.
		locks, err := clusterLocker(t, dial(t, &redis.Options{Addr: addr})).With(core.WithRenewEvery(ttl / 10))
		ok(t, err)
		*l = locks
	}
	return s
}

// What the server takes for over is over: its clock is one that counts. The holder is told at
// its next renewal, and stale fences are refused.
func TestAServerClockThatStepsForwardEndsLeasesAndTheirHoldersHear(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	s := newStepped(t)
	x, read := acquire(t, s.locks, "name"), acquire(t, s.locks, "read", core.WithShared())
	waiting := s.waits(t, s.other)
	s.step(time.Hour)
	for _, lost := range []*core.Lease{x, read} {
		<-lost.Context().Done()
		if loss, _ := errors.AsType[*core.LostError](lost.Err()); loss == nil || loss.Reason != core.ReasonTaken {
			t.Errorf("%v, and not by what a renewal was told", lost.Err())
		}
		is(t, lost.Release(t.Context()), core.ErrLost)
	}
	y := <-waiting
	grows(t, y.Fence(), x.Fence())
	s.step(0) // and back, under the next lease
	s.staysAndGrows(t, y)
}

// Nobody's trust grows with what the server keeps for longer.
func TestAServerClockThatStepsBackLetsNobodyElseIn(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	s := newStepped(t)
	x := acquire(t, s.locks, "name")
	orphan := acquire(t, s.locks, "orphan", core.WithTTL(ttl), core.WithoutRenewal())
	waiting := s.waits(t, s.other)
	s.step(-time.Hour)

	<-orphan.Context().Done() // by its own clock
	is(t, orphan.Err(), core.ErrLost)
	for _, name := range []string{"orphan", "name"} { // an hour longer than its TTL
		_, err := s.other.TryAcquire(t.Context(), name)
		is(t, err, core.ErrHeld)
	}
	if left := s.direct.PTTL(t.Context(), s.key("orphan")).Val(); left < time.Hour/2 {
		t.Errorf("the orphan lives for %v", left)
	}
	ok(t, x.Release(t.Context()))
	y := <-waiting // at once: a release is no matter of clocks
	grows(t, y.Fence(), x.Fence())
	s.staysAndGrows(t, y)

	s.step(0)
	z := acquire(t, s.other, "orphan", core.WithWait(clusterTTL))
	grows(t, z.Fence(), orphan.Fence())
	ok(t, z.Release(t.Context()))
}

// staysAndGrows has y renewed and released, and looks at the fences that follow.
func (s *stepped) staysAndGrows(t *testing.T, y *core.Lease) {
	t.Helper()
	lasts(t, y)
	_, err := s.locks.TryAcquire(t.Context(), y.Name())
	is(t, err, core.ErrHeld)
	last := y.Fence()
	ok(t, y.Release(t.Context()))
	for range 100 {
		x := acquire(t, s.locks, y.Name())
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
	s := newStepped(t)
	x := acquire(t, s.locks, "name")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := s.other.Acquire(ctx, "name")
		gone <- err
	}()
	s.lineUp(t, 1)
	s.proxy.BlackHole(true) // as if its process were killed
	s.step(-time.Hour)
	if info := known(t, s.store(t), "name"); len(info.Line) != 1 || info.Line[0].Alive {
		t.Errorf("the line is %+v", info.Line)
	}
	ok(t, x.Release(t.Context()))
	ok(t, acquire(t, s.locks, "name", core.WithWait(clusterTTL)).Release(t.Context()))
	cancel()
	is(t, <-gone, core.ErrHeld) // as it was when it was last heard of
	s.proxy.Heal()
}
