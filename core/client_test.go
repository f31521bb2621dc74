package core_test

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// Faults that core had before it was built on the engine's rooms.

func TestDrainAwaitsNoCallWhoseLeaseHasEnded(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "other")
		x := b.acquire(b.locks, "name")
		ctx := context.WithoutCancel(x.Context())
		waiter := b.begin(func() error { return second(b.locks.Acquire(ctx, "other")) })
		drained := b.begin(func() error { return b.locks.Drain(b.Context()) })
		b.ok(x.Release(b.Context()))
		b.took(0, time.Second, func() {
			b.is(<-waiter, core.ErrDraining)
			b.ok(<-drained)
		})
	})
}

func TestAPanicOfAWaitIsRaisedOnTheWaitersGoroutineAndOthersGoOn(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		waits, client := 0, &hooked{Driver: b.store}
		locks := b.locker(client, observing(observer{
			core.EventWaiting: func(core.Event) { waits++ }, core.EventWaited: func(core.Event) { waits-- },
		}))
		client.wait = func(context.Context, driver.Claim) (driver.Grant, error) {
			client.wait = nil
			panic("hook")
		}
		b.panics("hook", func() { _, _ = locks.Acquire(b.Context(), "name") })
		if synctest.Wait(); waits != 0 {
			b.Errorf("%d wait", waits)
		}
		ctx, cancel := context.WithCancel(b.Context())
		b.ok(locks.Do(b.Context(), "other", noWork)) // it is known to be quick now, so the panic is on this goroutine
		client.acquire = func(context.Context, driver.Claim) (driver.Grant, error) {
			cancel()
			client.acquire = nil
			panic("hook")
		}
		b.panics("hook", func() { _, _ = locks.Acquire(ctx, "other") })
		time.AfterFunc(time.Second, func() { b.ok(holder.Release(context.Background())) })
		b.ok(locks.Do(b.Context(), "name", noWork))
		b.free()
		time.Sleep(time.Minute)
		if left := locks.Remains(); len(left) > 0 {
			b.Errorf("left: %v", left)
		}
	})
}

func TestCleanUpBehindThousandsOfCallsIsNoBurst(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.All(lab.RequestLost)
		b.abandon(b.locks, named("name", 3000))
		time.Sleep(time.Second)
		b.link.Heal()
		b.link.Delay(time.Millisecond, time.Millisecond)
		for s := range 10 {
			before := b.link.Calls(lab.OpRelease)
			time.Sleep(time.Second)
			if n := b.link.Calls(lab.OpRelease) - before; n > 700 {
				b.Errorf("%d releases in second %d after the outage", n, s)
			}
		}
	})
}

func TestAClientWhoseReadsNeverEndKeepsNobody(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "held")
		b.link.Hold() // whatever their context says
		b.took(bound, 0, func() { b.is(x.Release(b.Context()), core.ErrUnavailable) })
		b.took(bound, 0, func() { b.is(second(b.locks.TryAcquire(b.Context(), "name")), core.ErrUnavailable) })
		b.link.Heal()
	})
}

// A client with a hook may keep the context of each call, and look at it later.
func TestAContextThatAClientKeepsStaysThatOfItsCall(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		type request struct{}
		var kept []context.Context
		locks := b.locker(&hooked{Driver: b.store, can: func(can *driver.Capabilities) { can.Forgets = false },
			acquire: func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
				kept = append(kept, ctx)
				return b.store.Acquire(ctx, c)
			}})
		for i := range 8 {
			b.ok(locks.Do(context.WithValue(b.Context(), request{}, i), "name", noWork))
		}
		for i, ctx := range kept {
			if got := ctx.Value(request{}); got != i {
				b.Errorf("the context of request %d has the values of request %v", i, got)
			}
		}
		caller := b.in(time.Second / 10)
		b.gets(locks.Acquire(caller, "name"))
		ends, _ := caller.Deadline()
		if d, _ := kept[len(kept)-1].Deadline(); !d.Equal(ends) {
			b.Errorf("a call may take until %s, and its caller's context ends at %s", d, ends)
		}
	})
}

// A command of the asker has the values of the caller for whom it asks, such as a trace.
func TestAWaitHasTheValuesOfItsCaller(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		type request struct{}
		var seen any
		locks := b.locker(&hooked{Driver: b.store, wait: func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			seen = ctx.Value(request{})
			return b.store.Wait(ctx, c)
		}})
		held := b.acquire(b.other(), "name")
		waits := b.begin(func() error { return locks.Do(context.WithValue(b.Context(), request{}, 1), "name", noWork) })
		b.ok(held.Release(b.Context()))
		b.ok(<-waits)
		if seen != 1 {
			b.Errorf("the values of request %v", seen)
		}
	})
}

// punctual makes b.locks' backend one that keeps deadlines and cannot be interrupted otherwise. While hole is true, nothing is answered.
// attempt is called with the name of each attempt, on the goroutine that it runs on.
func (b *bench) punctual(hole *atomic.Bool, attempt func(name string) error) {
	b.Helper()
	silent := func(ctx context.Context) error {
		if deadline, ok := ctx.Deadline(); ok && hole.Load() {
			time.Sleep(time.Until(deadline))
			return errors.New("i/o timeout")
		}
		return nil
	}
	b.locks = b.locker(&hooked{Driver: b.store,
		acquire: func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			if err := cmp.Or(attempt(c.Name), silent(ctx)); err != nil {
				return driver.Grant{}, err
			}
			return b.store.Acquire(ctx, c)
		},
		release: func(ctx context.Context, c driver.Claim) error {
			if err := silent(ctx); err != nil {
				return err
			}
			return b.store.Release(ctx, c)
		},
	})
}

func TestACallRunsOnItsCallersGoroutineWhileTheBackendIsQuick(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var hole, apart atomic.Bool // apart: the last acquire ran on a goroutine of its own; clean-up does anyhow
		b.punctual(&hole, func(string) error {
			apart.Store(strings.Contains(string(debug.Stack()), "(*Group).Go"))
			return nil
		})
		heals := func() {
			synctest.Wait() // what cleans up has begun, and is not answered quickly
			hole.Store(false)
		}
		spawned := func(want bool, what string) {
			b.Helper()
			x := b.acquire(b.locks, "name")
			if apart.Load() != want {
				b.Errorf("%s: on a goroutine of its own: %v", what, !want)
			}
			b.ok(x.Release(b.Context()))
		}
		spawned(true, "before anything is known")
		spawned(false, "after a quick answer")
		time.Sleep(2 * time.Second)
		spawned(true, "after a while")

		cancelled := func(want time.Duration) {
			b.Helper()
			ctx, cancel := context.WithCancel(b.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			b.took(want, 0, func() { b.is(second(b.locks.TryAcquire(ctx, "name")), context.Canceled) })
		}
		x := b.acquire(b.locks, "held")
		hole.Store(true)
		cancelled(250 * time.Millisecond) // the first one that is not answered
		cancelled(50 * time.Millisecond)
		heals()
		spawned(true, "after silence")

		spawned(false, "after a quick answer")
		hole.Store(true)
		b.took(100*time.Millisecond, 40*time.Millisecond, func() {
			b.is(x.Release(b.in(100*time.Millisecond)), core.ErrUnavailable)
		})
		heals()
		b.ok(b.locks.Close(b.Context())) // the release goes on without its caller
		b.ok(b.acquire(b.other(), "held").Release(b.Context()))
	})
}

// The first attempt ends with an error, the second one is made at once, and then nothing is answered.
func TestACancelledCallerWaitsNoLongerForTheSecondCommand(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var hole atomic.Bool
		attempts := 0
		b.punctual(&hole, func(name string) error {
			if name != "name" {
				return nil
			}
			if attempts++; attempts == 1 {
				return errors.New("broken")
			}
			hole.Store(true)
			return nil
		})
		b.ok(b.acquire(b.locks, "warm").Release(b.Context()))
		ctx, cancel := context.WithCancel(b.Context())
		time.AfterFunc(time.Millisecond, func() { b.ok(b.acquire(b.locks, "other").Release(b.Context())) })
		time.AfterFunc(10*time.Millisecond, cancel)
		b.took(0, 300*time.Millisecond, func() { b.is(second(b.locks.Acquire(ctx, "name")), context.Canceled) })
		hole.Store(false)
	})
}
