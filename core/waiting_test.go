package core_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
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
	observer := core.Observer{
		Waiting: func(core.WaitingEvent) { waiting.Add(1) },
		Waited:  func(core.WaitedEvent) { waiting.Add(-1) },
		Missed:  func(e core.MissedEvent) { waiting.Add(int64(e.Waiters)) },
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
	}, core.WithObserver(observer))
}

func TestAnInvertedOrderIsLoggedOnceForEachPairOfTemplates(t *testing.T) {
	t.Parallel()
	for _, names := range []bool{false, true} {
		var logged bytes.Buffer
		opts := []core.NewOption{core.WithLogger(slog.New(slog.NewTextHandler(&logged, nil)))}
		if names {
			opts = append(opts, core.WithNamesInLogs())
		}
		virtual(t, func(b *bench) {
			other := b.other()
			wait := func(outer, inner string) {
				b.Helper()
				x := b.acquire(other, inner)
				b.ok(b.locks.Do(b.Context(), outer, func(ctx context.Context) error {
					b.is(b.locks.Do(ctx, inner, func(context.Context) error { return nil },
						core.WithWait(time.Second), core.WithTemplate(inner[:1]+":{id}")), core.ErrHeld)
					return nil
				}, core.WithTemplate(outer[:1]+":{id}")))
				b.ok(x.Release(b.Context()))
			}
			wait("b:1", "a:1")
			wait("b:2", "a:2")
			wait("a:1", "b:1") // the order of AcquireAll
			b.ok(b.locks.Do(b.Context(), "d:1", func(ctx context.Context) error {
				return b.locks.Do(ctx, "c:1", func(context.Context) error { return nil }) // it is free
			}))
			b.ok(b.locks.Close(b.Context()))
		}, opts...)
		text := logged.String()
		if n := strings.Count(text, "holds a greater one"); n != 1 || !strings.Contains(text, "template=a:{id}") || !strings.Contains(text, "held=b:{id}") {
			t.Errorf("logged %d times:\n%s", n, text)
		}
		if has := strings.Contains(text, "name=a:1") && strings.Contains(text, "held_name=b:1"); has != names || strings.Contains(text, "a:1") != names {
			t.Errorf("names %t:\n%s", names, text)
		}
	}
}
