package temporalmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw/temporalmw"
)

func newLocker(t *testing.T, d driver.Driver) *core.Locker {
	t.Helper()
	l, err := core.New(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return l
}

type order struct {
	ID int `json:"order_id,omitempty"`
}

// leaseName is an activity.
func leaseName(ctx context.Context, _ order, _ string) (string, error) {
	x, ok := core.FromContext(ctx)
	if !ok {
		return "none", nil
	}
	return x.Name(), nil
}

// execute runs an activity, registered as Ship, behind the interceptor.
func execute(t *testing.T, i interceptor.WorkerInterceptor, work any, args ...any) (string, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{i}})
	env.RegisterActivityWithOptions(work, activity.RegisterOptions{Name: "Ship"})
	value, err := env.ExecuteActivity("Ship", args...)
	if err != nil {
		return "", err
	}
	var result string
	err = value.Get(&result)
	return result, err
}

func TestAnActivityRunsUnderTheNameOfItsArguments(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"order:{order_id}": "order:42", "customer:{arg:1}": "customer:ann", "activity:{temporal:activity}": "activity:Ship",
	} {
		i := temporalmw.Interceptor(newLocker(t, memlock.New()), temporalmw.WithActivity("Ship", template))
		got, err := execute(t, i, leaseName, order{42}, "ann")
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", template, got, err)
		}
	}
}

func TestARefusedActivityDoesNotRun(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		args   order
		before func(t *testing.T, store *memlock.Store, locks, other *core.Locker)
		kind   string
		retry  bool
		says   string
	}{
		"Held": {order{42}, func(t *testing.T, _ *memlock.Store, _, other *core.Locker) {
			t.Helper()
			x, err := other.TryAcquire(t.Context(), "order:42", core.WithLabel("worker-1"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = x.Release(context.WithoutCancel(t.Context())) })
		}, temporalmw.TypeHeld, true, "held"},
		"NoValue": {order{}, nil, temporalmw.TypeKey, false, "{order_id} is missing"},
		"Unavailable": {order{42}, func(_ *testing.T, s *memlock.Store, _, _ *core.Locker) { s.SetDown(true) },
			temporalmw.TypeUnavailable, true, "did not answer"},
		"Draining": {order{42}, func(t *testing.T, _ *memlock.Store, locks, _ *core.Locker) {
			t.Helper()
			_ = locks.Drain(t.Context())
		}, temporalmw.TypeUnavailable, true, "about to stop"},
		"Closed": {order{42}, func(t *testing.T, _ *memlock.Store, locks, _ *core.Locker) {
			t.Helper()
			_ = locks.Close(t.Context())
		}, temporalmw.TypeUnavailable, true, "about to stop"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store := memlock.New()
			locks, other := newLocker(t, store), newLocker(t, store)
			if test.before != nil {
				test.before(t, store, locks, other)
			}
			defer store.SetDown(false)
			_, err := execute(t, temporalmw.Interceptor(locks, temporalmw.WithActivity("Ship", "order:{order_id}")),
				func(context.Context, order, string) (string, error) { t.Error("it ran"); return "", nil }, test.args, "")
			failed, ok := errors.AsType[*temporal.ApplicationError](err)
			if !ok || failed.Type() != test.kind || failed.NonRetryable() == test.retry {
				t.Fatalf("%v", err)
			}
			if delay := failed.NextRetryDelay(); what == "Held" && (delay < 4*time.Second || delay > 6*time.Second) {
				t.Errorf("tries again in %v", delay)
			}
			if text := err.Error(); strings.Contains(text, "order:42") || strings.Contains(text, "worker-1") || !strings.Contains(text, test.says) {
				t.Errorf("the history is told too much, or not what happened: %s", text)
			}
		})
	}
}

func TestAnActivityHoldsAllNamesOfItsKeys(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks, other := newLocker(t, store), newLocker(t, store)
	i := temporalmw.Interceptor(locks, temporalmw.WithActivity("Ship", "order:{order_id} customer:{arg:1}"))
	both := func(context.Context, order, string) (string, error) {
		for _, name := range []string{"order:42", "customer:ann"} {
			if _, err := other.TryAcquire(t.Context(), name); !errors.Is(err, core.ErrHeld) {
				t.Errorf("%s: %v", name, err)
			}
		}
		return "done", nil
	}
	if got, err := execute(t, i, both, order{42}, "ann"); got != "done" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	x, err := other.Acquire(t.Context(), "customer:ann")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Release(context.WithoutCancel(t.Context())) }()
	for customer, kind := range map[string]string{"ann": temporalmw.TypeHeld, "": temporalmw.TypeKey} {
		_, err := execute(t, i, both, order{42}, customer)
		if failed, ok := errors.AsType[*temporal.ApplicationError](err); !ok || failed.Type() != kind {
			t.Errorf("%q: %v", customer, err)
		}
	}
}

func TestWhoFindsTheNameHeldIsToldOfTheActivity(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks, other := newLocker(t, store), newLocker(t, store)
	i := temporalmw.Interceptor(locks, temporalmw.WithActivity("Ship", "order:{order_id}"))
	_, err := execute(t, i, func(context.Context, order, string) (string, error) {
		_, err := other.TryAcquire(t.Context(), "order:42")
		if held, ok := errors.AsType[*core.HeldError](err); !ok || !strings.HasSuffix(held.Label, " Ship") {
			t.Error(err)
		}
		return "", nil
	}, order{42}, "")
	if err != nil {
		t.Error(err)
	}
}

func TestADuplicateDoesNotRun(t *testing.T) {
	t.Parallel()
	i := temporalmw.Interceptor(newLocker(t, memlock.New()), temporalmw.WithActivity("Ship", "order:{order_id}", core.WithDedup(time.Hour)))
	if _, err := execute(t, i, leaseName, order{42}, ""); err != nil {
		t.Fatal(err)
	}
	_, err := execute(t, i, leaseName, order{42}, "")
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); !ok || failed.Type() != temporalmw.TypeDuplicate || !failed.NonRetryable() {
		t.Errorf("%v", err)
	}
}

func TestAnActivityThatLostItsLockDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, verdict := range []error{nil, errors.New("broken"), temporal.NewNonRetryableApplicationError("never again", "Never", nil)} {
		i := temporalmw.Interceptor(newLocker(t, memlock.New()),
			temporalmw.WithActivity("Ship", "order:{order_id}", core.WithMaxHold(10*time.Millisecond)))
		_, err := execute(t, i, func(ctx context.Context, _ order, _ string) (string, error) {
			<-ctx.Done()
			return "", verdict
		}, order{42}, "")
		if failed, ok := errors.AsType[*temporal.ApplicationError](err); !ok || failed.Type() != temporalmw.TypeLost || failed.NonRetryable() {
			t.Errorf("%v became %v", verdict, err)
		}
	}
}

func TestALossIsToldEvenIfTheActivityWasCancelledToo(t *testing.T) {
	t.Parallel()
	for _, verdict := range []error{context.Canceled, temporal.NewCanceledError("cleaned up")} {
		i := temporalmw.Interceptor(newLocker(t, memlock.New()),
			temporalmw.WithActivity("Ship", "order:{order_id}", core.WithMaxHold(10*time.Millisecond)))
		background, cancel := context.WithCancel(t.Context())
		defer cancel()
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.SetWorkerOptions(worker.Options{BackgroundActivityContext: background, Interceptors: []interceptor.WorkerInterceptor{i}})
		env.RegisterActivityWithOptions(func(ctx context.Context, _ order, _ string) (string, error) {
			<-ctx.Done()
			cancel()
			return "", verdict
		}, activity.RegisterOptions{Name: "Ship"})
		_, err := env.ExecuteActivity("Ship", order{42}, "")
		if failed, ok := errors.AsType[*temporal.ApplicationError](err); !ok || failed.Type() != temporalmw.TypeLost {
			t.Errorf("%v became %v", verdict, err)
		}
	}
}

func TestAnActivitysErrorIsItsOwn(t *testing.T) {
	t.Parallel()
	i := temporalmw.Interceptor(newLocker(t, memlock.New()), temporalmw.WithActivity("Ship", "order:{order_id}"))
	_, err := execute(t, i, func(context.Context, order, string) (string, error) {
		return "", temporal.NewNonRetryableApplicationError("no stock", "NoStock", nil)
	}, order{42}, "")
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); !ok || failed.Type() != "NoStock" || !failed.NonRetryable() {
		t.Errorf("%v", err)
	}
}

func TestActivitiesWithoutARuleAreNotLocked(t *testing.T) {
	t.Parallel()
	i := temporalmw.Interceptor(newLocker(t, memlock.New()), temporalmw.WithActivity("Bill", "order:{order_id}"))
	_, err := execute(t, i, func(ctx context.Context, _ order, _ string) (string, error) {
		if x, ok := core.FromContext(ctx); ok {
			t.Error(x)
		}
		return "", nil
	}, order{42}, "")
	if err != nil {
		t.Error(err)
	}
}

func TestRulesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New())
	for what, opts := range map[string][]temporalmw.Option{
		"a nil option":      {nil},
		"a broken template": {temporalmw.WithActivity("Ship", "order:{id")},
		"an unknown source": {temporalmw.WithActivity("Ship", "order:{header:id}")},
		"no number":         {temporalmw.WithActivity("Ship", "order:{arg:x}")},
		"a negative number": {temporalmw.WithActivity("Ship", "order:{arg:-1}")},
		"no type":           {temporalmw.WithActivity("", "order:{id}")},
		"a type twice":      {temporalmw.WithActivity("Ship", "a"), temporalmw.WithActivity("Ship", "b")},
		"a broken option":   {temporalmw.WithActivity("Ship", "a", core.WithTTL(1))},
		"no function":       {temporalmw.WithActivityFunc("Ship", nil)},
	} {
		if _, err := temporalmw.New(locks, opts...); !errors.Is(err, core.ErrInvalid) || !strings.HasPrefix(err.Error(), "temporalmw: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := temporalmw.New(nil); !errors.Is(err, core.ErrInvalid) {
		t.Error(err)
	}
}
