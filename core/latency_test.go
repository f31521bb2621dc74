package core_test

import (
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
	"github.com/holdfast-go/holdfast/core/memlock"
)

// punctual is a backend that keeps deadlines and cannot be interrupted otherwise.
type punctual struct {
	*memlock.Store
	hole    atomic.Bool // nothing is answered
	spawned atomic.Bool // the last acquire ran on a goroutine of its own; clean-up does anyhow
}

func (p *punctual) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	p.spawned.Store(strings.Contains(string(debug.Stack()), "(*Group).Go"))
	if p.silent(ctx) {
		return driver.Grant{}, errors.New("i/o timeout")
	}
	return p.Store.Acquire(ctx, c)
}

func (p *punctual) Release(ctx context.Context, c driver.Claim) error {
	if p.silent(ctx) {
		return errors.New("i/o timeout")
	}
	return p.Store.Release(ctx, c)
}

func (p *punctual) silent(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok && p.hole.Load() {
		time.Sleep(time.Until(deadline))
		return true
	}
	return false
}

func TestACallRunsOnItsCallersGoroutineWhileTheBackendIsQuick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t}
		store := &punctual{Store: memlock.New()}
		locks, err := core.New(store)
		b.ok(err)
		spawned := func(want bool, what string) {
			t.Helper()
			x := b.acquire(locks, "name")
			if store.spawned.Load() != want {
				t.Errorf("%s: on a goroutine of its own: %v", what, !want)
			}
			b.ok(x.Release(t.Context()))
		}
		spawned(true, "before anything is known")
		spawned(false, "after a quick answer")
		time.Sleep(2 * time.Second)
		spawned(true, "after a while")

		cancelled := func(want time.Duration, what string) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			b.took(want, 0, func() {
				b.is(second(locks.TryAcquire(ctx, "name")), context.Canceled)
			})
			if t.Failed() {
				t.Log(what)
			}
		}
		x := b.acquire(locks, "held")
		store.hole.Store(true)
		cancelled(250*time.Millisecond, "the first one that is not answered")
		cancelled(50*time.Millisecond, "the next one")
		store.hole.Store(false)
		spawned(true, "after silence")

		spawned(false, "after a quick answer")
		store.hole.Store(true)
		deadline, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		b.took(100*time.Millisecond, 0, func() {
			b.is(second(locks.TryAcquire(deadline, "name")), context.DeadlineExceeded)
		})
		store.hole.Store(false)
		spawned(true, "after silence")

		spawned(false, "after a quick answer")
		store.hole.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		b.took(100*time.Millisecond, 40*time.Millisecond, func() { b.is(x.Release(ctx), core.ErrUnavailable) })
		store.hole.Store(false)
		b.ok(locks.Close(t.Context())) // the release goes on without its caller
		if _, err := store.Store.Acquire(t.Context(), driver.Claim{Name: "held", Token: "x", TTL: time.Second}); err != nil {
			t.Error(err)
		}
	})
}

// again answers the first attempt by an error, the second one at once, and then nothing.
type again struct {
	punctual
	n atomic.Int32
}

func (a *again) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if c.Name != "name" {
		return a.Store.Acquire(ctx, c)
	}
	if a.n.Add(1) == 1 {
		return driver.Grant{}, errors.New("broken")
	}
	a.hole.Store(true)
	return a.punctual.Acquire(ctx, c)
}

func TestACancelledCallerWaitsNoLongerForTheSecondCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t}
		store := &again{punctual: punctual{Store: memlock.New()}}
		locks, err := core.New(store)
		b.ok(err)
		b.ok(b.acquire(locks, "warm").Release(b.Context()))
		ctx, cancel := context.WithCancel(b.Context())
		time.AfterFunc(time.Millisecond, func() { b.ok(b.acquire(locks, "other").Release(b.Context())) })
		time.AfterFunc(10*time.Millisecond, cancel)
		b.took(0, 300*time.Millisecond, func() {
			b.is(second(locks.Acquire(ctx, "name")), context.Canceled)
		})
		store.hole.Store(false)
		b.ok(locks.Close(b.Context()))
	})
}
