package core_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// detecting has a Locker with leak detection, in real time: the garbage collector knows no other.
func detecting(t *testing.T, opts ...core.NewOption) (locks *core.Locker, forgotten func() []core.ForgottenEvent) {
	t.Helper()
	return detectingOn(t, memlock.New(), opts...)
}

func detectingOn(t *testing.T, d driver.Driver, opts ...core.NewOption) (locks *core.Locker, forgotten func() []core.ForgottenEvent) {
	t.Helper()
	var mu sync.Mutex
	var all []core.ForgottenEvent
	locks, err := core.New(d, append(opts, core.WithObserver(core.Observer{Forgotten: func(e core.ForgottenEvent) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, e)
	}}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = locks.Close(ctx) // a test may leave a lease
	})
	return locks, func() []core.ForgottenEvent {
		mu.Lock()
		defer mu.Unlock()
		return append([]core.ForgottenEvent(nil), all...)
	}
}

// collected lets the garbage collector run until cond holds.
func collected(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for range 2000 {
		runtime.GC()
		if cond() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never came true: %s", what)
}

func forget(t *testing.T, locks *core.Locker, name string) {
	t.Helper()
	if _, err := locks.Acquire(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

func TestAForgottenLeaseIsReleasedAndNamed(t *testing.T) {
	t.Parallel()
	locks, forgotten := detecting(t, core.WithLeakDetection())
	forget(t, locks, "lost")
	collected(t, "the name is free", func() bool {
		x, err := locks.TryAcquire(t.Context(), "lost")
		return err == nil && x.Release(t.Context()) == nil
	})
	collected(t, "observers are told", func() bool { return len(forgotten()) == 1 })
	if e := forgotten()[0]; e.Name != "lost" || !strings.Contains(e.Where, "core_test.forget forgotten_test.go:") {
		t.Errorf("%+v", e)
	}
}

func TestALeaseThatCanBeReleasedIsNotForgotten(t *testing.T) {
	t.Parallel()
	locks, forgotten := detecting(t, core.WithLeakDetection())
	contextOf := func(name string) context.Context {
		x, err := locks.Acquire(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if y, _ := core.FromContext(x.Context()); y != x {
			t.Error("the context has another lease")
		}
		return x.Context()
	}
	kept, err := locks.Acquire(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	plain := contextOf("by-its-context")
	derived, cancel := context.WithCancel(context.WithValue(contextOf("by-a-context-of-it"), t, t))
	defer cancel()
	forget(t, locks, "lost")
	collected(t, "the lost one is found", func() bool { return len(forgotten()) > 0 })
	runtime.GC()
	if all := forgotten(); len(all) != 1 || all[0].Name != "lost" {
		t.Errorf("%+v", all)
	}
	if err := kept.Err(); err != nil {
		t.Error(err)
	}
	for _, ctx := range []context.Context{plain, derived} {
		if err := core.Confirm(ctx); err != nil {
			t.Error(err)
		}
		inner, err := locks.TryAcquire(ctx, "by-its-context") // re-enters, or takes another name
		if err == nil {
			err = inner.Release(ctx)
		}
		x, ok := core.FromContext(ctx)
		if !ok || err != nil && ctx == plain {
			t.Errorf("%v, %t", err, ok)
		}
		if err := x.Release(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if err := kept.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestACallWaitsUnderTheContextOfALeaseThatIsWatchedForLeaks(t *testing.T) {
	t.Parallel()
	locks, _ := detecting(t, core.WithLeakDetection())
	outer, err := locks.Acquire(t.Context(), "outer")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := locks.Acquire(t.Context(), "inner")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Acquire(outer.Context(), "inner", core.WithWait(10*time.Millisecond)); !errors.Is(err, core.ErrHeld) {
		t.Error(err)
	}
	for _, x := range []*core.Lease{outer, inner} {
		if err := x.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A release of a lease that was granted in line may wait for the first renewal, a few milliseconds.
func TestALeaseIsNotForgottenWhileItIsReleased(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	link := drivertest.NewLink(store)
	locks, forgotten := detectingOn(t, link, core.WithLeakDetection())
	other, _ := detectingOn(t, store)
	for range 10 {
		held, err := other.Acquire(t.Context(), "name")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *core.Lease, 1)
		go func() {
			x, err := locks.Acquire(t.Context(), "name")
			if err != nil {
				t.Error(err)
			}
			got <- x
		}()
		collected(t, "it stands in line", func() bool {
			info, err := store.Inspect(t.Context(), "name")
			return err == nil && len(info.Line) == 1
		})
		link.Delay(20*time.Millisecond, 20*time.Millisecond)
		before := link.Calls(drivertest.OpRenew)
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		collected(t, "the first renewal is under way", func() bool { return link.Calls(drivertest.OpRenew) > before })
		released := make(chan error, 1)
		go func() { released <- (<-got).Release(t.Context()) }()
		collected(t, "the release", func() bool { return len(released) == 1 })
		if err := <-released; err != nil {
			t.Error(err)
		}
		link.Heal()
	}
	if all := forgotten(); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

func TestWithoutLeakDetectionNothingIsReleasedUnasked(t *testing.T) {
	t.Parallel()
	locks, forgotten := detecting(t)
	forget(t, locks, "lost")
	for range 5 {
		runtime.GC()
	}
	if _, err := locks.TryAcquire(t.Context(), "lost"); err == nil || len(forgotten()) > 0 {
		t.Errorf("%v, %+v", err, forgotten())
	}
}
