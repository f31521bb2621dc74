package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func TestUnderMaxmemoryOnlyNewGrantsFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name")
	y := acquire(t, w.locks, "done", core.WithDedup(time.Hour))
	const patient = 6 * time.Second // a release may take 2 s then, where other tests have the machine
	z := acquire(t, w.locks, "read", core.WithShared(), core.WithTTL(patient))
	k := acquire(t, w.locks, "kept", core.WithMinHold(time.Minute), core.WithTTL(patient))
	w.do(t, "config", "set", "maxmemory-policy", "noeviction")
	w.do(t, "config", "set", "maxmemory", "1")
	_, err := w.locks.TryAcquire(t.Context(), "other")
	is(t, err, core.ErrUnavailable)
	_, err = w.other.TryAcquire(t.Context(), "name")
	is(t, err, core.ErrHeld)
	lasts(t, x)
	lasts(t, z)
	ok(t, x.Release(t.Context()))
	ok(t, y.Complete(t.Context()))
	ok(t, z.Release(t.Context()))
	ok(t, k.Release(t.Context()))
	w.do(t, "config", "set", "maxmemory", "0")
	ok(t, acquire(t, w.other, "name", core.WithWait(0)).Release(t.Context()))
	_, err = w.other.TryAcquire(t.Context(), "done", core.WithDedup(time.Hour))
	is(t, err, core.ErrDuplicate)
	ok(t, acquire(t, w.other, "read").Release(t.Context()))
	_, err = w.other.TryAcquire(t.Context(), "kept")
	is(t, err, core.ErrHeld)
}

// Also those of many claims that are merged, and of the guard.
func TestScriptsThatAreFlushedAreLoadedInTheSameCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	disturb(t, time.Millisecond, func(ctx context.Context) { w.direct.ScriptFlush(ctx) })
	s, guard := w.store(t), newGuard(t, w.direct)
	for i := range 100 {
		ok(t, acquire(t, w.locks, "name", core.WithWait(0)).Release(t.Context()))
		c := claim("other", fmt.Sprint("other-", i))
		grant(t, s, c)
		ok(t, renew(t, s, c))
		release(t, s, c)
		ok(t, guard.Do(t.Context(), uint64(i+1), "SET", "k", i).Err())
	}
	for range 10 {
		crowd(100, func(i int) {
			c := claim(fmt.Sprint("name-", i), "mine")
			_, err := s.Acquire(t.Context(), c)
			if err := errors.Join(err, s.Release(t.Context(), c)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFencesGrowWhenTheCounterIsLostOrStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	counter := "{" + w.prefix + "}:v1:fence"
	ahead := time.Now().Add(time.Hour).UnixMicro()
	var last uint64
	for _, value := range []string{"", "5", "1000000000000000", "garbage", "-1", fmt.Sprint(ahead)} {
		x := acquire(t, w.locks, "name")
		grows(t, x.Fence(), last)
		last = x.Fence()
		if value == "" { // all is lost, the lease too
			w.do(t, "flushall")
			<-x.Context().Done()
			is(t, x.Err(), core.ErrLost)
			continue
		}
		ok(t, x.Release(t.Context()))
		w.do(t, "set", counter, value)
	}
	s := w.store(t)
	last = uint64(ahead)
	for i := range 200 { // consecutive fences, 16 digits long; core would ask again, if an answer is late, and get another one
		c := claim("name", fmt.Sprint(i))
		g := grant(t, s, c)
		if g.Fence != last+1 {
			t.Fatalf("fence %d after %d", g.Fence, last)
		}
		last = g.Fence
		release(t, s, c)
	}
	w.do(t, "set", counter, "99999999999999999") // a number that no fence can be is no grant either
	_, err := w.locks.TryAcquire(t.Context(), "name")
	is(t, err, core.ErrUnavailable)
}

func TestAnOldDumpBringsBackAnEndedLeaseForOneTTLAtMost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name")
	y := acquire(t, w.locks, "long", core.WithTTL(time.Minute))
	dumped := time.Now()
	w.do(t, "save")
	ok(t, x.Release(t.Context()))
	ok(t, y.Release(t.Context()))
	w.server.Kill()
	w.server.Restart()
	eventually(t, "the server answers", func() bool {
		_, err := w.other.TryAcquire(t.Context(), "long")
		return errors.Is(err, core.ErrHeld)
	})
	if left, err := w.direct.PTTL(t.Context(), w.key("long")).Result(); err != nil || left <= 0 || left > time.Minute {
		t.Errorf("the ghost lives for %v, %v", left, err)
	}
	z := acquire(t, w.other, "name")                                    // waits for the ghost, if there still is one
	if waited := time.Since(dumped); waited > ttl+ttl/3+5*time.Second { // and for a busy machine
		t.Errorf("the ghost lived for %v after its dump", waited)
	}
	grows(t, z.Fence(), x.Fence())
	ok(t, z.Release(t.Context()))
}

// ackBound is how long replicas may take: less than an attempt, but long for a busy machine.
const ackBound = ttl / 8

func TestAGrantCountsOnlyOnceReplicasHaveIt(t *testing.T) {
	t.Parallel()
	for kind, opt := range map[string]core.Option{"alone": core.WithLimit(1), "readers": core.WithShared(), "places": core.WithLimit(2)} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "--repl-diskless-sync-delay", "0")
			replica := follow(t, w.server)
			locks := w.locker(t, redislock.WithReplicas(1, ackBound))
			x := acquire(t, locks, "name", opt) // which waits until the replica has its stream
			lasts(t, x)
			at := dial(t, &redis.Options{Addr: replica.Addr()})
			crowd(40, func(i int) { // they share round trips
				for j := range 4 {
					name := fmt.Sprintf("name-%d-%d", i, j)
					check(t, locks.Do(t.Context(), name, func(ctx context.Context) error {
						if at.Exists(ctx, w.key(name)).Val() != 1 {
							t.Errorf("the replica has not heard of %s", name)
						}
						return nil
					}, opt))
				}
			})
			replica.Pause()
			_, err := locks.TryAcquire(t.Context(), "name")
			is(t, err, core.ErrHeld)
			for _, acquire := range []func(context.Context, string, ...core.Option) (*core.Lease, error){locks.TryAcquire, locks.Acquire} {
				_, err := acquire(t.Context(), "other", opt)
				if is(t, err, core.ErrUnavailable); err == nil || !strings.Contains(err.Error(), "0 of 1 replicas") {
					t.Fatalf("%v does not say why, though the last answer was cut off", err)
				}
			}
			_, err = w.store(t, redislock.WithReplicas(1, ackBound)).Acquire(t.Context(), claim("mine", "x"))
			if err == nil || !strings.Contains(err.Error(), "0 of 1 replicas") || errors.Is(err, driver.ErrNotSent) {
				t.Errorf("%v does not say why, or that it is known not to be granted", err)
			}
			ok(t, acquire(t, w.other, "other").Release(t.Context())) // what was granted is given back
			<-x.Context().Done()                                     // no renewal counts
			is(t, x.Err(), core.ErrLost)
			replica.Resume()
			recovers(t, locks, "name") // grants count again
		})
	}
}
