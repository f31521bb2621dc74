package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// Faults that core had before it was built on the engine's rooms.

func TestNothingThatWasLostLeavesAMarker(t *testing.T) {
	t.Parallel()
	t.Run("one name of a set", func(t *testing.T) {
		virtual(t, func(b *bench) {
			names, dedup := []string{"a", "b"}, core.WithDedup(time.Hour)
			err := b.locks.DoAll(b.Context(), names, func(ctx context.Context) error {
				b.store.Lose("b")
				<-ctx.Done()
				return nil
			}, dedup)
			b.is(err, core.ErrLost)
			b.ok(b.locks.DoAll(b.Context(), names, noWork, dedup))
			b.is(b.locks.DoAll(b.Context(), names, noWork, dedup), core.ErrDuplicate)
		})
	})
	t.Run("held for too long", func(t *testing.T) {
		virtual(t, func(b *bench) {
			dedup := core.WithDedup(time.Hour)
			err := b.locks.Do(b.Context(), "name", func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			}, dedup, core.WithMaxHold(time.Second))
			b.is(err, core.ErrLost)
			b.ok(b.locks.Do(b.Context(), "name", noWork, dedup))
			b.is(b.locks.Do(b.Context(), "name", noWork, dedup), core.ErrDuplicate)
		})
	})
}

func TestDrainAwaitsNoCallWhoseLeaseHasEnded(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "other")
		x := b.acquire(b.locks, "name")
		ctx := context.WithoutCancel(x.Context())
		done := b.begin(func() error { return second(b.locks.Acquire(ctx, "other")) })
		time.Sleep(time.Second)
		drained := b.begin(func() error { return b.locks.Drain(b.Context()) })
		b.ok(x.Release(b.Context()))
		b.took(0, time.Second, func() {
			select {
			case err := <-done:
				b.is(err, core.ErrDraining)
			case <-time.After(time.Minute):
				b.Error("it still waits")
			}
			select {
			case err := <-drained:
				b.ok(err)
			case <-time.After(time.Minute):
				b.Error("Drain still waits")
			}
		})
		b.ok(holder.Release(b.Context()))
		time.Sleep(time.Minute)
	})
}

// panickingWait is a client whose next Wait panics.
type panickingWait struct {
	*memlock.Store
	once atomic.Bool
}

func (p *panickingWait) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if p.once.CompareAndSwap(false, true) {
		panic("hook")
	}
	return p.Store.Wait(ctx, c)
}

func TestAPanicOfAWaitIsRaisedOnTheWaitersGoroutineAndOthersGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t}
		store := memlock.New()
		other := locker(t, store)
		holder := b.acquire(other, "name")
		locks, err := core.New(&panickingWait{Store: store})
		b.ok(err)
		raised := make(chan any, 1)
		go func() {
			defer func() { raised <- recover() }()
			_, _ = locks.Acquire(b.Context(), "name")
		}()
		if v := <-raised; v != "hook" {
			t.Errorf("raised: %v", v)
		}
		released := make(chan error)
		time.AfterFunc(time.Second, func() { released <- holder.Release(context.Background()) })
		b.ok(locks.Do(b.Context(), "name", noWork))
		b.ok(<-released)
		b.ok(b.acquire(other, "name").Release(b.Context()))
		time.Sleep(time.Minute)
		if left := locks.Remains(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		b.ok(locks.Close(b.Context()))
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

// stubborn is a client whose reads never end, whatever their context says.
type stubborn struct {
	*memlock.Store
	silent atomic.Bool
	free   chan struct{}
}

func (s *stubborn) Capabilities() driver.Capabilities {
	can := s.Store.Capabilities()
	can.Punctual, can.Forgets = false, false
	return can
}

func (s *stubborn) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if s.silent.Load() {
		<-s.free
	}
	return s.Store.Acquire(ctx, c)
}

func (s *stubborn) Release(ctx context.Context, c driver.Claim) error {
	if s.silent.Load() {
		<-s.free
	}
	return s.Store.Release(ctx, c)
}

func TestAClientWhoseReadsNeverEndKeepsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t}
		client := &stubborn{Store: memlock.New(), free: make(chan struct{})}
		locks := locker(t, client)
		x := b.acquire(locks, "held")
		client.silent.Store(true)
		b.took(bound, 0, func() { b.is(x.Release(b.Context()), core.ErrUnavailable) })
		b.took(bound, 0, func() {
			b.is(second(locks.TryAcquire(b.Context(), "name")), core.ErrUnavailable)
		})
		client.silent.Store(false)
		close(client.free)
	})
}

// keeping is a client with a hook that keeps the context of each call, and looks at it later.
type keeping struct {
	*memlock.Store
	kept []context.Context
}

func (k *keeping) Capabilities() driver.Capabilities {
	can := k.Store.Capabilities()
	can.Punctual, can.Forgets = true, false
	return can
}

func (k *keeping) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	k.kept = append(k.kept, ctx)
	return k.Store.Acquire(ctx, c)
}

func TestAContextThatAClientKeepsStaysThatOfItsCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type request struct{}
		b := &bench{T: t}
		client := &keeping{Store: memlock.New()}
		locks := locker(t, client)
		for i := range 8 {
			b.ok(locks.Do(context.WithValue(b.Context(), request{}, i), "name", noWork))
		}
		for i, ctx := range client.kept {
			if got := ctx.Value(request{}); got != i {
				b.Errorf("the context of request %d has the values of request %v", i, got)
			}
		}
	})
}
