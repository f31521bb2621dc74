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
	"github.com/holdfast-go/holdfast/core/redislock"
)

// stepped is a server whose wall clock can be set, and two processes that use it.
type stepped struct {
	step         func(ahead time.Duration)
	rdb          *redis.Client
	locks, other *core.Locker
}

func newStepped(t *testing.T) *stepped {
	t.Helper()
	server, step := servers.RedisWithClock(t)
	s := &stepped{step: step, rdb: dial(t, &redis.Options{Addr: server.Addr()})}
	for _, l := range []**core.Locker{&s.locks, &s.other} {
		// Much shorter than the TTL, so that what ends a lease is not the end of its trust.
		locks, err := locker(t, dial(t, &redis.Options{Addr: server.Addr()})).With(core.WithTTL(clusterTTL), core.WithRenewEvery(ttl/10))
		ok(t, err)
		*l = locks
	}
	return s
}

// waits has a call in line, whose lease comes out of the channel.
func (s *stepped) waits(t *testing.T, name string) <-chan *core.Lease {
	t.Helper()
	got := make(chan *core.Lease, 1)
	go func() {
		y, err := s.other.Acquire(t.Context(), name)
		if err != nil {
			t.Error(err)
		}
		got <- y
	}()
	eventually(t, "it stands in line", func() bool { return s.rdb.Exists(t.Context(), "{holdfast:"+name+"}:v1:line").Val() == 1 })
	return got
}

// What the server takes for over is over: its clock is one that counts. The holder is told at
// its next renewal, and stale fences are refused.
func TestAServerClockThatStepsForwardEndsLeasesAndTheirHoldersHear(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	s := newStepped(t)
	x, read := acquire(t, s.locks, "name"), acquire(t, s.locks, "read", core.WithShared())
	waiting := s.waits(t, "name")
	s.step(time.Hour)
	for _, lost := range []*core.Lease{x, read} {
		<-lost.Context().Done()
		if loss, _ := errors.AsType[*core.LostError](lost.Err()); loss == nil || loss.Reason != core.ReasonTaken {
			t.Errorf("%v, and not by what a renewal was told", lost.Err())
		}
		is(t, lost.Release(t.Context()), core.ErrLost)
	}
	y := <-waiting
	if y == nil {
		return
	}
	if y.Fence() <= x.Fence() {
		t.Errorf("fence %d after %d", y.Fence(), x.Fence())
	}
	s.step(0) // and back, under the next lease
	staysAndGrows(t, s, y)
}

// Nobody's trust grows with what the server keeps for longer.
func TestAServerClockThatStepsBackLetsNobodyElseIn(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	s := newStepped(t)
	x := acquire(t, s.locks, "name")
	orphan := acquire(t, s.locks, "orphan", core.WithTTL(ttl), core.WithoutRenewal())
	waiting := s.waits(t, "name")
	s.step(-time.Hour)

	<-orphan.Context().Done() // by its own clock
	is(t, orphan.Err(), core.ErrLost)
	_, err := s.other.TryAcquire(t.Context(), "orphan")
	is(t, err, core.ErrHeld) // an hour longer than its TTL
	if left := s.rdb.PTTL(t.Context(), "holdfast:orphan").Val(); left < time.Hour/2 {
		t.Errorf("the orphan lives for %v", left)
	}
	_, err = s.other.TryAcquire(t.Context(), "name")
	is(t, err, core.ErrHeld)
	ok(t, x.Release(t.Context()))
	y := <-waiting // at once: a release is no matter of clocks
	if y == nil {
		return
	}
	if y.Fence() <= x.Fence() {
		t.Errorf("fence %d after %d", y.Fence(), x.Fence())
	}
	staysAndGrows(t, s, y)

	s.step(0)
	z := acquire(t, s.other, "orphan", core.WithWait(clusterTTL))
	if z.Fence() <= orphan.Fence() {
		t.Errorf("fence %d after %d", z.Fence(), orphan.Fence())
	}
	ok(t, z.Release(t.Context()))
}

// staysAndGrows has y renewed and released, and looks at the fences that follow.
func staysAndGrows(t *testing.T, s *stepped, y *core.Lease) {
	t.Helper()
	lasts(t, y)
	_, err := s.locks.TryAcquire(t.Context(), y.Name())
	is(t, err, core.ErrHeld)
	last := y.Fence()
	ok(t, y.Release(t.Context()))
	for range 100 {
		x := acquire(t, s.locks, y.Name())
		if x.Fence() <= last {
			t.Fatalf("fence %d after %d", x.Fence(), last)
		}
		last = x.Fence()
		ok(t, x.Release(t.Context()))
	}
}

// The line's members are dead at times of the server's clock: after a step back they would live
// for as long as the step is.
func TestADeadWaiterHoldsNobodyUpAfterTheServersClockStepsBack(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server, step := servers.RedisWithClock(t)
	proxy := faultproxy.New(t, server.Addr())
	s := &stepped{step: step, rdb: dial(t, &redis.Options{Addr: server.Addr()})}
	s.locks, s.other = clusterLocker(t, s.rdb), clusterLocker(t, dial(t, &redis.Options{Addr: proxy.Addr()}))
	x := acquire(t, s.locks, "name")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := s.other.Acquire(ctx, "name")
		gone <- err
	}()
	eventually(t, "it stands in line", func() bool { return s.rdb.Exists(t.Context(), "{holdfast:name}:v1:line").Val() == 1 })
	proxy.BlackHole(true) // as if its process were killed
	step(-time.Hour)
	info, err := redislock.New(s.rdb).Inspect(t.Context(), "name")
	ok(t, err)
	if len(info.Line) != 1 || info.Line[0].Alive {
		t.Errorf("the line is %+v", info.Line)
	}
	ok(t, x.Release(t.Context()))
	y := acquire(t, s.locks, "name", core.WithWait(clusterTTL))
	ok(t, y.Release(t.Context()))
	cancel()
	is(t, <-gone, core.ErrHeld) // as it was when it was last heard of
	proxy.Heal()
}
