package telemetrytest_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func doer(tb testing.TB, opts ...core.NewOption) func() {
	tb.Helper()
	locks, err := core.New(memlock.New(), append(opts, core.WithTemplate(template))...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = locks.Close(context.Background()) })
	ctx := tb.Context()
	return func() {
		if err := locks.Do(ctx, "order:42", nothing); err != nil {
			tb.Fatal(err)
		}
	}
}

// An observer that wants nothing shows what observing alone allocates, and a Locker without one must not pay
// that.
//
//nolint:paralleltest // it counts the allocations of the process
func TestALockerThatNobodyObservesAllocatesNothingForIt(t *testing.T) {
	unobserved := testing.AllocsPerRun(1000, doer(t))
	observed := testing.AllocsPerRun(1000, doer(t, core.WithObserver(func(core.Event) {})))
	t.Logf("allocations of a Do: %.0f unobserved, %.0f observed", unobserved, observed)
	if unobserved >= observed {
		t.Errorf("a Do allocates %.0f times unobserved, and %.0f times observed", unobserved, observed)
	}
}
