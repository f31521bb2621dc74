package core_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestCloseRefusesNewWorkAndFailsThoseWhoWait(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "name")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { b.is(second(b.locks.Acquire(b.Context(), "name")), core.ErrClosed) })
		}
		synctest.Wait()
		derived, err := b.locks.With(core.WithWait(0))
		b.ok(err)
		b.took(0, 0, func() { b.ok(derived.Close(b.Context())) })
		wg.Wait()
		b.is(second(b.locks.Acquire(b.Context(), "other")), core.ErrClosed)
		b.is(derived.Do(b.Context(), "other", func(context.Context) error { panic("ran") }), core.ErrClosed)
		b.ok(b.locks.Close(b.Context()))
	})
}

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
		closed := b.begin(func() error { return b.locks.Close(b.Context()) })
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

func TestAGrantThatArrivesAfterCloseIsGivenBack(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Next(lab.OpAcquire, lab.HeldBack)
		acquired := b.begin(func() error { return second(b.locks.Acquire(b.Context(), "name")) })
		closed := b.begin(func() error { return b.locks.Close(b.Context()) })
		b.link.Deliver()
		b.is(<-acquired, core.ErrClosed)
		b.ok(<-closed)
		b.ok(b.acquire(b.other(), "name").Release(b.Context()))
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
		locks, err := core.New(memlock.New(), observing(observer{Released: func(core.Event) { told.Store(true) }}))
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
