package core_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func TestObserversKnowHowManyCallsWait(t *testing.T) {
	t.Parallel()
	var waiting atomic.Int64
	observer := observer{
		Waiting: func(core.Event) { waiting.Add(1) },
		Waited:  func(core.Event) { waiting.Add(-1) },
		Missed:  func(e core.Event) { waiting.Add(int64(e.Waiters)) },
	}
	virtual(t, func(b *bench) {
		count := func(want int64) {
			b.Helper()
			synctest.Wait()
			if n := waiting.Load(); n != want {
				b.Errorf("%d wait, not %d", n, want)
			}
		}
		x := b.acquire(b.locks, "a")
		y := b.acquire(b.other(), "b")
		var wg sync.WaitGroup
		for _, name := range []string{"a", "a", "b", "b", "b"} {
			wg.Go(func() {
				_ = b.locks.Do(b.Context(), name, func(context.Context) error { return nil }, core.WithWait(time.Minute))
			})
		}
		time.Sleep(time.Second)
		count(5)
		b.ok(x.Release(b.Context()))
		count(3)
		time.Sleep(2 * time.Minute)
		count(0)
		b.ok(y.Release(b.Context()))
		wg.Wait()
	}, observing(observer))
}

// nested has two calls take two names in opposite order: one holds "a" and asks for "b" after a second, the
// other one holds "b" and asks for "a" after two. It returns what they got.
func nested(b *bench, one, other *core.Locker, asks ...func(ctx context.Context, name string) error) (errs [2]error) {
	var wg sync.WaitGroup
	for i, outer := range []string{"a", "b"} {
		locks := []*core.Locker{one, other}[i]
		wg.Go(func() {
			errs[i] = locks.Do(b.Context(), outer, func(ctx context.Context) error {
				time.Sleep(time.Duration(i+1) * time.Second)
				inner := []string{"b", "a"}[i]
				if i < len(asks) {
					return asks[i](ctx, inner)
				}
				return locks.Do(ctx, inner, noWork)
			})
		})
	}
	wg.Wait()
	return errs
}

func TestCallsThatWaitForOneAnotherGoOnOnceOneGivesUp(t *testing.T) {
	t.Parallel()
	for what, ask := range map[string]func(b *bench, ctx context.Context, name string) error{
		"its budget": func(b *bench, ctx context.Context, name string) error {
			return b.locks.Do(ctx, name, noWork, core.WithWait(time.Hour))
		},
		"its context": func(b *bench, ctx context.Context, name string) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return b.locks.Do(ctx, name, noWork)
		},
	} {
		virtual(t, func(b *bench) {
			var errs [2]error
			b.took(time.Hour+time.Second, time.Millisecond, func() {
				errs = nested(b, b.locks, b.locks, func(ctx context.Context, name string) error { return ask(b, ctx, name) })
			})
			if b.is(errs[0], core.ErrHeld); errs[1] != nil {
				b.Errorf("%s: the other one: %v", what, errs[1])
			}
		})
	}
	virtual(t, func(b *bench) {
		time.AfterFunc(time.Hour, func() { b.ok(b.locks.Close(context.Background())) })
		var errs [2]error
		b.took(time.Hour, time.Millisecond, func() { errs = nested(b, b.locks, b.locks) })
		b.is(errs[0], core.ErrClosed)
		b.is(errs[1], core.ErrClosed)
	})
}

func TestWithoutReentryACallWaitsForItsOwnLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.ok(b.locks.Do(b.Context(), "name", func(ctx context.Context) error {
			b.took(time.Hour, 0, func() {
				b.is(b.locks.Do(ctx, "name", noWork, core.WithoutReentry(), core.WithWait(time.Hour)), core.ErrHeld)
			})
			return nil
		}))
	})
}
