package core_test

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

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
		hole.Store(false)
		spawned(true, "after silence")

		spawned(false, "after a quick answer")
		hole.Store(true)
		b.took(100*time.Millisecond, 0, func() {
			b.is(second(b.locks.TryAcquire(b.in(100*time.Millisecond), "name")), context.DeadlineExceeded)
		})
		hole.Store(false)
		spawned(true, "after silence")

		spawned(false, "after a quick answer")
		hole.Store(true)
		b.took(100*time.Millisecond, 40*time.Millisecond, func() {
			b.is(x.Release(b.in(100*time.Millisecond)), core.ErrUnavailable)
		})
		hole.Store(false)
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
