package core_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestCloseReleasesNothingUnderRunningWork(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other, finish := b.other(), make(chan bool)
		done := b.begin(func() error {
			return b.locks.Do(b.Context(), "name", func(ctx context.Context) error {
				<-ctx.Done()
				b.is(context.Cause(ctx), core.ErrClosed)
				x, _ := core.FromContext(ctx)
				b.is(second(b.locks.Acquire(ctx, "name", core.WithWait(0))), core.ErrClosed)
				b.ok(x.Err()) // it is still exclusive
				<-finish
				return nil
			})
		})
		synctest.Wait()
		b.acquire(other, "theirs")
		waits := b.begin(func() error { return second(b.locks.Acquire(b.Context(), "name")) })
		asks := b.begin(func() error { return second(b.locks.Acquire(b.Context(), "theirs")) })
		closed := b.begin(func() error { return b.locks.Close(b.Context()) })
		if len(waits)+len(asks) < 2 {
			b.Fatal("a call waits after Close")
		}
		b.is(<-waits, core.ErrClosed)
		b.is(<-asks, core.ErrClosed)
		for range 10 { // it is renewed
			time.Sleep(ttl)
			b.taken(other, "name")
		}
		if len(closed) > 0 {
			b.Errorf("Close returned %v under running work", <-closed)
		}
		close(finish)
		b.ok(<-done)
		b.ok(<-closed)
		b.free()
	})
}

func second[T any](_ T, err error) error { return err }

func TestStartAndStopUnderLoadLeavesNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for range 50 {
			locks := b.other()
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					var err error
					for err == nil {
						err = locks.Do(b.Context(), "name", func(context.Context) error { time.Sleep(time.Millisecond); return nil })
					}
					b.is(err, core.ErrClosed)
				})
			}
			time.Sleep(5 * time.Millisecond)
			b.ok(locks.Close(b.Context()))
			wg.Wait()
		}
		b.free()
	})
}

// What ended before Close returned is told by then.
func TestCloseReturnsAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	b := &bench{T: t}
	for range 3000 {
		var told atomic.Bool
		locks, err := core.New(memlock.New(), observing(observer{core.EventReleased: func(core.Event) { told.Store(true) }}))
		b.ok(err)
		x := b.acquire(locks, "name")
		var release sync.WaitGroup
		release.Go(func() { b.ok(x.Release(t.Context())) })
		b.ok(locks.Close(t.Context()))
		if !told.Load() {
			t.Fatal("Close has returned before the release was told")
		}
		release.Wait()
	}
}

// unclosed is a backend whose subscriptions do not end in time.
type unclosed struct{ *lab.Net }

func (unclosed) Close(context.Context) error { return errWork }

func TestCloseSaysWhatOfTheBackendHasNotEnded(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		locks, err := core.New(unclosed{b.link})
		b.ok(err)
		b.is(locks.Close(b.Context()), errWork)
	})
}

func TestDrainRefusesNewWorkAndThoseWhoWaitAndAwaitsWorkUnderWay(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		if b.locks.Draining() {
			b.Error("it drains before it is told to")
		}
		b.acquire(b.other(), "name")
		leave := make(chan struct{})
		done := b.begin(func() error {
			return b.locks.Do(b.Context(), "work", func(ctx context.Context) error {
				<-leave
				b.ok(ctx.Err())
				b.ok(b.locks.Do(ctx, "inner", noWork)) // belongs to it
				other := b.acquire(b.other(), "elsewhere")
				b.is(b.locks.Do(context.WithoutCancel(other.Context()), "inner", noWork), core.ErrDraining)
				return b.locks.DoAll(ctx, []string{"x", "y"}, noWork)
			})
		})
		refused := func(err error) {
			b.Helper()
			b.is(err, core.ErrDraining, core.ErrUnavailable)
			if strings.Contains(err.Error(), "unavailable") || core.KindOf(err) != core.KindUnavailable {
				b.Errorf("%v: no outage", err)
			}
		}
		asks, waits := b.call(b.locks), b.call(b.locks)
		var drained [2]<-chan error
		for i := range drained {
			drained[i] = b.begin(func() error { return b.locks.Drain(b.Context()) })
		}
		refused(asks.failed())
		refused(waits.failed())
		if !b.locks.Draining() {
			b.Error("Draining is false")
		}
		refused(second(b.locks.TryAcquire(b.Context(), "other")))
		time.Sleep(time.Hour) // the lease is renewed meanwhile
		if len(drained[0])+len(drained[1]) > 0 {
			b.Fatal("Drain returned while work was under way")
		}
		close(leave)
		b.ok(<-done)
		b.ok(<-drained[0])
		b.ok(<-drained[1])
		refused(second(b.locks.Acquire(b.Context(), "name")))
		b.ok(b.locks.Close(b.Context()))
		b.is(second(b.locks.Acquire(b.Context(), "name")), core.ErrClosed)
	})
}

func TestWorkUnderWayMayWaitWhileTheLockerDrains(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		held := b.acquire(b.other(), "name")
		b.ok(b.locks.DoAll(b.Context(), []string{"some", "work"}, func(ctx context.Context) error {
			over := b.begin(func() error { return b.locks.Do(ctx, "name", noWork) })
			b.says(b.locks.Drain(b.in(time.Second)), context.DeadlineExceeded, "2 leases ")
			b.ok(held.Release(b.Context()))
			return <-over
		}))
		b.ok(b.locks.Drain(b.Context()))
	})
}

func TestACampaignThatWaitsEndsWhenTheLockerDrains(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "name")
		waits := b.begin(func() error { return b.locks.Campaign(b.Context(), "name", noWork) })
		leads := b.begin(func() error { // and loses its lease once the Locker drains
			return b.locks.Campaign(b.Context(), "led", func(ctx context.Context) error { <-ctx.Done(); return nil }, core.WithMaxHold(time.Hour))
		})
		b.took(time.Hour, 0, func() { // with no pause then
			b.ok(b.locks.Drain(b.Context()))
			b.is(<-waits, core.ErrDraining)
			b.is(<-leads, core.ErrDraining)
		})
		b.is(b.locks.Campaign(b.Context(), "name", noWork), core.ErrDraining)
	})
}

func TestDrainRefusesAnAcquireAllThatHasSomeOfItsNamesOnly(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "b")
		over := b.begin(func() error { return b.locks.DoAll(b.Context(), pair, noWork) })
		b.took(0, 0, func() { b.ok(b.locks.Drain(b.Context())) })
		b.is(<-over, core.ErrDraining)
	})
}

func TestCloseEndsADrain(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		drained := b.begin(func() error { return b.locks.Drain(b.Context()) })
		closed := b.begin(func() error { return b.locks.Close(b.Context()) })
		if len(drained) == 0 {
			b.Error("Drain goes on after Close")
		}
		b.ok(x.Release(b.Context()))
		b.ok(<-closed)
		b.is(<-drained, core.ErrClosed)
	})
}

func TestDrainDoesNotAwaitCleanUp(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.All(lab.RequestLost, lab.OpAcquire, lab.OpRelease)
		b.is(second(b.locks.TryAcquire(b.Context(), "name")), core.ErrUnavailable) // its outcome is open
		b.took(0, time.Second, func() { b.ok(b.locks.Drain(b.Context())) })
		b.took(0, 2*time.Second, func() { b.ok(b.locks.Close(b.Context())) }) // nor Close, for long
	})
}

// What is granted to a call that Drain ends is given back, and its caller does not wait for that.
func TestACallThatDrainEndsDoesNotWaitForWhatItGivesBack(t *testing.T) {
	t.Parallel()
	acquired := 0 // as often as it is told of the release
	virtual(t, func(b *bench) {
		b.link.Delay(0, 700*time.Millisecond)
		time.AfterFunc(500*time.Millisecond, func() { _ = b.locks.Drain(b.Context()) })
		b.took(700*time.Millisecond, 0, func() { // granted when Drain has begun
			b.is(second(b.locks.Acquire(b.Context(), "name")), core.ErrDraining)
		})
		b.link.Heal()
		b.freeWithin(time.Second, "name")
		synctest.Wait()
		if acquired != 1 {
			b.Errorf("acquired %d times", acquired)
		}
	}, observing(observer{core.EventAcquired: func(core.Event) { acquired++ }}))
}
