package core_test

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func TestTheObserverGivesTheWorkItsContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	var seen []any // the values that later events have
	see := func(e core.Event) { seen = append(seen, e.Context.Value(key{})) }
	virtual(t, func(b *bench) {
		has := func(want string) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				if v := ctx.Value(key{}); v != want {
					b.Errorf("%v, not %v", v, want)
				}
				return nil
			}
		}
		b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
			return b.locks.Do(ctx, "a", has("work on a")) // the outer one's
		}))
		b.ok(b.locks.DoAll(b.Context(), []string{"c", "b"}, has("work on c")))
		x := b.acquire(b.locks, "name")
		b.ok(has("work on name")(x.Context()))
		turn := turnAfter(x, b.call(b.locks))
		b.ok(has("work on name")(turn.Context()))
		b.ok(turn.Release(b.Context()))
		y := b.acquire(b.locks, "e", core.WithMaxHold(time.Second))
		time.Sleep(2 * time.Second)
		b.is(y.Release(b.Context()), core.ErrLost)
		b.ok(b.locks.Close(b.Context()))
		if len(seen) != 6 || slices.Contains(seen, nil) {
			b.Errorf("%v", seen)
		}
	}, observing(observer{
		Released: see, Lost: see,
		WorkContext: func(ctx context.Context, e core.Event) context.Context {
			return context.WithValue(ctx, key{}, "work on "+e.Name)
		},
	}))
}

func TestAnObserverThatFailsToMakeAContextHarmsNoWork(t *testing.T) {
	t.Parallel()
	for _, fails := range map[string]func(){"panics": func() { panic("on purpose") }, "gives nothing": func() {}} {
		virtual(t, func(b *bench) {
			for range 2 {
				b.is(b.locks.Do(b.Context(), "name", func(ctx context.Context) error { return cmp.Or(ctx.Err(), errWork) }), errWork)
			}
			b.free()
		}, observing(observer{
			WorkContext: func(context.Context, core.Event) context.Context { fails(); return nil },
		}))
	}
}

func TestAnObserverThatEndsTheGoroutineLeavesNoLease(t *testing.T) {
	t.Parallel()
	for leases, calls := range map[int]func(b *bench){
		1: func(b *bench) { _, _ = b.locks.Acquire(b.Context(), "b") },
		2: func(b *bench) { _, _ = b.locks.AcquireAll(b.Context(), pair) },
	} {
		counts := make(map[core.EventKind]int)
		virtual(t, func(b *bench) {
			x := b.acquire(b.other(), "b")
			go calls(b)
			synctest.Wait()
			b.ok(x.Release(b.Context()))
			synctest.Wait()
			b.pairIsFree()
			b.ok(b.locks.Close(b.Context()))
			if counts[core.EventAcquired] != leases || counts[core.EventReleased] != leases || counts[core.EventWaiting] != counts[core.EventWaited] {
				b.Errorf("of %d leases the observer was told %v", leases, counts)
			}
		}, core.WithObserver(func(e core.Event) { counts[e.Kind]++ }), core.WithWorkContext(func(_ context.Context, e core.Event) context.Context {
			if e.Name == "b" {
				runtime.Goexit()
			}
			return nil
		}))
	}
}

func TestALeaseIsAcquiredBeforeItIsLost(t *testing.T) {
	t.Parallel()
	var told []core.EventKind
	virtual(t, func(b *bench) {
		b.is(b.acquire(b.locks, "name", core.WithMaxHold(ttl/10)).Release(b.Context()), core.ErrLost)
		synctest.Wait()
		if !slices.Equal(told, []core.EventKind{core.EventAcquired, core.EventLost}) {
			b.Errorf("%v", told)
		}
	}, core.WithObserver(func(e core.Event) { told = append(told, e.Kind) }),
		core.WithWorkContext(func(context.Context, core.Event) context.Context { time.Sleep(ttl / 5); return nil }))
}

func TestWorkThatOnlyAsksLearnsThatItsCallerHasGone(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		b.is(b.locks.Do(ctx, "name", func(ctx context.Context) error {
			b.ok(ctx.Err())
			cancel()
			return ctx.Err()
		}), context.Canceled)
	})
}

// curious is a context whose caller asks for its end on the way.
type curious struct {
	context.Context

	asks func()
}

func (c *curious) Done() <-chan struct{} {
	if asks := c.asks; asks != nil {
		c.asks = nil
		asks()
	}
	return c.Context.Done()
}

func TestAllWhoAskForTheEndOfTheWorkAtOnceAreToldOfTheSame(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx := &curious{Context: b.Context()}
		b.ok(b.locks.Do(ctx, "name", func(work context.Context) error {
			var inner <-chan struct{}
			ctx.asks = func() { inner = work.Done() }
			if outer := work.Done(); inner == nil || outer != inner {
				b.Error("two ends of one context")
			}
			return nil
		}))
	})
}
