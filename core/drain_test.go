package core_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestDrainRefusesNewWorkAndThoseWhoWaitAndAwaitsWorkUnderWay(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		if b.locks.Draining() {
			b.Error("it drains before it is told to")
		}
		held := b.acquire(b.other(), "name")
		done := make(chan error, 1)
		leave := make(chan struct{})
		entered := make(chan struct{})
		go func() {
			done <- b.locks.Do(b.Context(), "work", func(ctx context.Context) error {
				close(entered)
				<-leave
				b.ok(ctx.Err())
				b.ok(b.locks.Do(ctx, "inner", noWork)) // belongs to it
				b.ok(b.locks.DoAll(ctx, []string{"x", "y"}, noWork))
				return nil
			})
		}()
		<-entered
		var wg sync.WaitGroup
		for range 10 { // one contender, and a queue behind it
			wg.Go(func() {
				_, err := b.locks.Acquire(b.Context(), "name")
				b.is(err, core.ErrDraining)
				b.is(err, core.ErrUnavailable)
			})
		}
		synctest.Wait()
		drained := make(chan error, 2)
		for range 2 {
			go func() { drained <- b.locks.Drain(b.Context()) }()
		}
		synctest.Wait()
		wg.Wait()
		if !b.locks.Draining() {
			t.Error("Draining is false")
		}
		for range 2 {
			_, err := b.locks.TryAcquire(b.Context(), "other")
			b.is(err, core.ErrDraining)
			if core.KindOf(err) != core.KindUnavailable {
				t.Errorf("kind %d of %v", core.KindOf(err), err)
			}
		}
		select {
		case err := <-drained:
			t.Fatalf("Drain returned %v while work was under way", err)
		case <-time.After(time.Hour): // the lease is renewed meanwhile
		}
		close(leave)
		b.ok(<-done)
		b.ok(<-drained)
		b.ok(<-drained)
		b.ok(held.Release(b.Context()))
		b.is(second(b.locks.Acquire(b.Context(), "name")), core.ErrDraining)
		b.ok(b.locks.Close(b.Context()))
		b.is(second(b.locks.Acquire(b.Context(), "name")), core.ErrClosed)
	})
}

func TestWorkUnderWayMayWaitWhileTheLockerDrains(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		held := b.acquire(b.other(), "name")
		b.ok(b.locks.Do(b.Context(), "work", func(ctx context.Context) error {
			over := make(chan error, 1)
			go func() {
				over <- b.locks.Do(ctx, "name", noWork)
			}()
			synctest.Wait()
			short := b.in(time.Second)
			err := b.locks.Drain(short)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 lease ") {
				t.Errorf("Drain: %v", err)
			}
			b.ok(held.Release(b.Context()))
			return <-over
		}))
		b.ok(b.locks.Drain(b.Context()))
	})
}

func TestACampaignThatWaitsEndsWhenTheLockerDrains(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.other(), "name")
		over := make(chan error, 2)
		waits := func() {
			over <- b.locks.Campaign(b.Context(), "name", noWork)
		}
		go waits()
		go func() { // it leads, and loses its lease once the Locker drains
			over <- b.locks.Campaign(b.Context(), "led", func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			}, core.WithMaxHold(time.Hour))
		}()
		synctest.Wait()
		b.ok(b.locks.Drain(b.Context()))
		b.is(<-over, core.ErrDraining)
		b.is(<-over, core.ErrDraining)
		waits()
		b.is(<-over, core.ErrDraining)
		b.ok(x.Release(b.Context()))
	})
}

func TestDrainRefusesAnAcquireAllThatHasSomeOfItsNamesOnly(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.other(), "b")
		over := b.begin(func() error { return b.locks.DoAll(b.Context(), []string{"a", "b"}, noWork) })
		b.took(0, 0, func() { b.ok(b.locks.Drain(b.Context())) })
		b.is(<-over, core.ErrDraining)
		b.ok(x.Release(b.Context()))
	})
}

func TestDrainDoesNotAwaitCleanUp(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.All(lab.RequestLost, lab.OpAcquire, lab.OpRelease)
		b.is(second(b.locks.TryAcquire(b.Context(), "name")), core.ErrUnavailable) // its outcome is open
		b.took(0, time.Second, func() { b.ok(b.locks.Drain(b.Context())) })
	})
}

// What is granted to a call that Drain ends is given back, and its caller does not wait for that longer than he likes.
func TestACallThatDrainEndsStillEndsWithItsContext(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(0, 700*time.Millisecond)
		ctx := b.in(time.Second)
		time.AfterFunc(500*time.Millisecond, func() { _ = b.locks.Drain(b.Context()) })
		b.took(time.Second, 50*time.Millisecond, func() {
			b.is(second(b.locks.Acquire(ctx, "name")), core.ErrDraining) // granted when Drain has begun
		})
		b.link.Heal()
		b.freeWithin(time.Second, "name")
	})
}

func TestWhatIsStillInUseIsCountedInWords(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		l := b.other()
		one, two := b.acquire(l, "one"), b.acquire(l, "two")
		says := func(call func(context.Context) error, want string) {
			t.Helper()
			ctx := b.in(time.Second)
			if err := call(ctx); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		says(l.Drain, "drain: 2 leases still in use: ")
		b.ok(one.Release(b.Context()))
		says(l.Drain, "drain: 1 lease still in use: ")
		says(l.Close, "close: 1 lease still in use, left to the TTL: ")
		_ = two.Release(b.Context())
	})
}
