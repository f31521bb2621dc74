package core_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

type workKey struct{}

// giving is an observer that gives the work a value, and notes the values that later events have.
func giving(seen *[]any) observer {
	add := func(s core.Event) { *seen = append(*seen, s.Context.Value(workKey{})) }
	return observer{
		WorkContext: func(ctx context.Context, e core.Event) context.Context {
			return context.WithValue(ctx, workKey{}, "work on "+e.Name)
		},
		Released: func(e core.Event) { add(e) },
		Lost:     func(e core.Event) { add(e) },
	}
}

func TestTheObserverGivesTheWorkItsContext(t *testing.T) {
	t.Parallel()
	var seen []any
	virtual(t, func(b *bench) {
		has := func(ctx context.Context, want any) error {
			if v := ctx.Value(workKey{}); v != want {
				b.Errorf("%v, not %v", v, want)
			}
			return nil
		}
		b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
			return b.locks.Do(ctx, "a", func(ctx context.Context) error { return has(ctx, "work on a") }) // the outer one's
		}))
		b.ok(b.locks.DoAll(b.Context(), []string{"c", "b"}, func(ctx context.Context) error { return has(ctx, "work on c") }))
		x := b.acquire(b.locks, "d")
		b.ok(has(x.Context(), "work on d"))
		w := b.goes(b.Context(), func(ctx context.Context) (*core.Lease, error) { return b.locks.Acquire(ctx, "d") })
		b.ok(x.Release(b.Context()))
		turn := w.granted()
		b.ok(has(turn.Context(), "work on d"))
		b.ok(turn.Release(b.Context()))
		y := b.acquire(b.locks, "e", core.WithMaxHold(time.Second))
		time.Sleep(2 * time.Second)
		b.is(y.Release(b.Context()), core.ErrLost)
		b.ok(b.locks.Close(b.Context()))
		for _, v := range seen {
			if v == nil {
				b.Errorf("%v", seen)
			}
		}
		if len(seen) != 6 {
			b.Errorf("%d events", len(seen))
		}
	}, observing(giving(&seen)))
}

func TestAnObserverThatFailsToMakeAContextHarmsNoWork(t *testing.T) {
	t.Parallel()
	for _, fails := range map[string]func(){"panics": func() { panic("on purpose") }, "gives nothing": func() {}} {
		virtual(t, func(b *bench) {
			for range 2 {
				ran := false
				b.ok(b.locks.Do(b.Context(), "name", func(ctx context.Context) error { ran = true; return ctx.Err() }))
				if !ran {
					b.Error("no work")
				}
			}
			b.free()
			b.ok(b.locks.Close(b.Context()))
		}, observing(observer{
			WorkContext: func(context.Context, core.Event) context.Context { fails(); return nil },
		}))
	}
}

func TestAnObserverThatEndsTheGoroutineLeavesNoLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		go func() { _, _ = b.locks.Acquire(b.Context(), "name") }()
		synctest.Wait()
		b.free()
	}, observing(observer{
		WorkContext: func(context.Context, core.Event) context.Context { runtime.Goexit(); return nil },
	}))
}

func TestAnObserverThatEndsTheGoroutineLeavesNoLeaseOfAnAcquireAll(t *testing.T) {
	t.Parallel()
	counts := make(map[string]int)
	virtual(t, func(b *bench) {
		x := b.acquire(b.other(), "b")
		go func() { _, _ = b.locks.AcquireAll(b.Context(), []string{"a", "b"}) }()
		synctest.Wait()
		b.ok(x.Release(b.Context()))
		synctest.Wait()
		b.ok(b.acquire(b.other(), "a").Release(b.Context()))
		b.ok(b.locks.Close(b.Context()))
	}, observing(observer{
		WorkContext: func(_ context.Context, e core.Event) context.Context {
			if e.Name == "b" {
				runtime.Goexit()
			}
			return nil
		},
		Acquired: func(core.Event) { counts["acquired"]++ },
		Released: func(core.Event) { counts["released"]++ },
		Waiting:  func(core.Event) { counts["waiting"]++ },
		Waited:   func(core.Event) { counts["waited"]++ },
	}))
	if counts["acquired"] != 2 || counts["released"] != 2 || counts["waiting"] != counts["waited"] {
		t.Errorf("the observer was told of %v", counts)
	}
}

func TestALeaseIsAcquiredBeforeItIsLost(t *testing.T) {
	t.Parallel()
	var told []string
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithMaxHold(ttl/10))
		b.is(x.Release(b.Context()), core.ErrLost)
	}, observing(observer{
		WorkContext: func(context.Context, core.Event) context.Context { time.Sleep(ttl / 5); return nil },
		Acquired:    func(core.Event) { told = append(told, "acquired") },
		Lost:        func(core.Event) { told = append(told, "lost") },
	}))
	if !slices.Equal(told, []string{"acquired", "lost"}) {
		t.Errorf("%q", told)
	}
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
