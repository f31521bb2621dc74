package rivermw_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/riverqueue/river/rivertype"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw/rivermw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func job(args string) *rivertype.JobRow {
	return &rivertype.JobRow{ID: 7, Kind: "ship", Queue: "default", EncodedArgs: []byte(args), Metadata: []byte(`{"tenant":"acme"}`)}
}

var errBroken = errors.New("broken")

func TestAJobRunsUnderTheNameOfItsArguments(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"order:{order_id}":                        "order:42",
		"tenant:{metadata:tenant}":                "tenant:acme",
		"{river:kind}:{river:queue}:{river:id}":   "ship:default:7",
		"customer:{customer.id}:order:{order_id}": "customer:c1:order:42",
	} {
		mw := rivermw.Middleware(newLocker(t, memlock.New()), rivermw.WithKind("ship", template))
		err := mw.Work(t.Context(), job(`{"order_id":42,"customer":{"id":"c1"}}`), func(ctx context.Context) error {
			if x, ok := core.FromContext(ctx); !ok || x.Name() != want {
				t.Errorf("%s: %v", template, x)
			}
			return errBroken
		})
		if !errors.Is(err, errBroken) || err != errBroken { //nolint:errorlint // that very error
			t.Errorf("%v is not the worker's own", err)
		}
	}
}

func TestARefusedJobDoesNotRun(t *testing.T) {
	t.Parallel()
	snoozed := func(err error) bool {
		s, ok := errors.AsType[*rivertype.JobSnoozeError](err)
		return ok && s.Duration >= 4*time.Second && s.Duration <= 6*time.Second
	}
	cancelled := func(err error) bool { _, ok := errors.AsType[*rivertype.JobCancelError](err); return ok }
	is := func(want error) func(error) bool {
		return func(err error) bool { return errors.Is(err, want) && !cancelled(err) && !snoozed(err) }
	}
	for what, test := range map[string]struct {
		args   string
		before func(t *testing.T, store *memlock.Store, locks, other *core.Locker)
		want   func(error) bool
	}{
		"Held": {`{"order_id":42}`, func(t *testing.T, _ *memlock.Store, _, other *core.Locker) {
			t.Helper()
			x, err := other.TryAcquire(t.Context(), "order:42")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = x.Release(context.WithoutCancel(t.Context())) })
		}, snoozed},
		"Draining": {`{"order_id":42}`, func(t *testing.T, _ *memlock.Store, locks, _ *core.Locker) {
			t.Helper()
			if err := locks.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, snoozed},
		"NoValue":     {`{}`, nil, cancelled},
		"NotJSON":     {`<order/>`, nil, cancelled},
		"Unavailable": {`{"order_id":42}`, func(_ *testing.T, s *memlock.Store, _, _ *core.Locker) { s.SetDown(true) }, is(core.ErrUnavailable)},
		"Closed": {`{"order_id":42}`, func(t *testing.T, _ *memlock.Store, locks, _ *core.Locker) {
			t.Helper()
			_ = locks.Close(t.Context())
		}, is(core.ErrClosed)},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store := memlock.New()
			locks, other := newLocker(t, store), newLocker(t, store)
			if test.before != nil {
				test.before(t, store, locks, other)
			}
			defer store.SetDown(false)
			err := rivermw.Middleware(locks, rivermw.WithKind("ship", "order:{order_id}")).
				Work(t.Context(), job(test.args), func(context.Context) error { t.Error("it ran"); return nil })
			if !test.want(err) {
				t.Errorf("%T %v", err, err)
			}
		})
	}
}

func TestWhoFindsTheNameHeldIsToldOfTheJob(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks, other := newLocker(t, store), newLocker(t, store)
	own := fmt.Sprintf(":%d job:ship:7", os.Getpid())
	for want, opts := range map[string][]core.Option{own: nil, "mine": {core.WithLabel("mine")}} {
		mw := rivermw.Middleware(locks, rivermw.WithKind("ship", "order:{order_id}", opts...))
		err := mw.Work(t.Context(), job(`{"order_id":42}`), func(context.Context) error {
			_, err := other.TryAcquire(t.Context(), "order:42")
			if held, ok := errors.AsType[*core.HeldError](err); !ok || !strings.HasSuffix(held.Label, want) {
				t.Error(err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestAJobHoldsAllNamesOfItsKeys(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks, other := newLocker(t, store), newLocker(t, store)
	rule := rivermw.WithKind("ship", "account:{from} account:{to}", core.WithMaxHold(50*time.Millisecond))
	mw := rivermw.Middleware(locks, rule)
	transfer := job(`{"from":"ann","to":"bob"}`)
	err := mw.Work(t.Context(), transfer, func(ctx context.Context) error {
		for _, name := range []string{"account:ann", "account:bob"} {
			if _, err := other.TryAcquire(t.Context(), name); !errors.Is(err, core.ErrHeld) {
				t.Errorf("%s: %v", name, err)
			}
		}
		<-ctx.Done() // MaxHold: one lost is all lost
		return rivertype.JobCancel(errBroken)
	})
	if _, cancelled := errors.AsType[*rivertype.JobCancelError](err); cancelled || !errors.Is(err, core.ErrLost) {
		t.Errorf("lost: %v", err)
	}
	x, err := other.Acquire(t.Context(), "account:bob")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Release(context.WithoutCancel(t.Context())) }()
	err = mw.Work(t.Context(), transfer, func(context.Context) error { t.Error("it ran"); return nil })
	if _, snoozed := errors.AsType[*rivertype.JobSnoozeError](err); !snoozed {
		t.Errorf("one of them held: %v", err)
	}
	err = mw.Work(t.Context(), job(`{"from":"ann"}`), func(context.Context) error { t.Error("it ran"); return nil })
	if _, cancelled := errors.AsType[*rivertype.JobCancelError](err); !cancelled {
		t.Errorf("one of them missing: %v", err)
	}
}

func TestADuplicateIsCompletedAndLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	mw := rivermw.Middleware(newLocker(t, memlock.New()), rivermw.WithKind("ship", "order:{order_id}", core.WithDedup(time.Hour)),
		rivermw.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	ran := 0
	for range 2 {
		if err := mw.Work(t.Context(), job(`{"order_id":42}`), func(context.Context) error { ran++; return nil }); err != nil {
			t.Error(err)
		}
	}
	if ran != 1 {
		t.Errorf("ran %d times", ran)
	}
	if line := log.String(); strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "kind=ship queue=default id=7\n") || strings.Contains(line, "order:42") {
		t.Errorf("%q", line)
	}
}

func TestAWorkerThatLostItsLockDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, verdict := range []error{nil, errBroken, rivertype.JobCancel(errBroken), &rivertype.JobSnoozeError{Duration: time.Hour}} {
		mw := rivermw.Middleware(newLocker(t, memlock.New()),
			rivermw.WithKind("ship", "order:{order_id}", core.WithMaxHold(10*time.Millisecond)))
		err := mw.Work(t.Context(), job(`{"order_id":42}`), func(ctx context.Context) error {
			<-ctx.Done()
			return verdict
		})
		_, cancelled := errors.AsType[*rivertype.JobCancelError](err)
		_, snoozed := errors.AsType[*rivertype.JobSnoozeError](err)
		if !errors.Is(err, core.ErrLost) || cancelled || snoozed || errors.Is(err, &rivertype.JobCancelError{}) {
			t.Errorf("%v became %v", verdict, err)
		}
		if verdict == errBroken && !errors.Is(err, errBroken) { //nolint:errorlint // that very error
			t.Errorf("%v lost the worker's error", err)
		}
	}
}

func TestAFunctionsErrorDecides(t *testing.T) {
	t.Parallel()
	for _, want := range []error{errBroken, core.ErrInvalid} {
		mw := rivermw.Middleware(newLocker(t, memlock.New()), rivermw.WithKindFunc("ship",
			func(context.Context, *rivertype.JobRow) (string, error) { return "", want }))
		err := mw.Work(t.Context(), job(`{}`), func(context.Context) error { t.Error("it ran"); return nil })
		if _, cancelled := errors.AsType[*rivertype.JobCancelError](err); cancelled != (want == core.ErrInvalid) || !errors.Is(err, want) { //nolint:errorlint // that very error
			t.Errorf("%v became %v", want, err)
		}
	}
}

func TestKindsWithoutARuleAreNotLocked(t *testing.T) {
	t.Parallel()
	mw := rivermw.Middleware(newLocker(t, memlock.New()), rivermw.WithKind("bill", "order:{order_id}"))
	err := mw.Work(t.Context(), job(`{}`), func(ctx context.Context) error {
		if x, ok := core.FromContext(ctx); ok {
			t.Error(x)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestHostileArgumentsGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	mw := rivermw.Middleware(newLocker(t, memlock.New()), rivermw.WithKind("ship", hostile.Template))
	var names hostile.Names
	for what, value := range hostile.Values() {
		args, err := json.Marshal(map[string]string{"v": value})
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(value) {
			continue // JSON has no such strings
		}
		err = mw.Work(t.Context(), job(string(args)), func(ctx context.Context) error {
			x, _ := core.FromContext(ctx)
			names.Check(t, value, x.Name())
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRulesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New())
	for what, opts := range map[string][]rivermw.Option{
		"a nil option":      {nil},
		"a broken template": {rivermw.WithKind("ship", "order:{id")},
		"an unknown source": {rivermw.WithKind("ship", "order:{header:id}")},
		"no kind":           {rivermw.WithKind("", "order:{id}")},
		"a template twice":  {rivermw.WithKind("ship", "order:{id} order:{id}")},
		"a kind twice":      {rivermw.WithKind("ship", "a"), rivermw.WithKind("ship", "b")},
		"a broken option":   {rivermw.WithKind("ship", "a", core.WithTTL(1))},
		"no function":       {rivermw.WithKindFunc("ship", nil)},
		"no snooze":         {rivermw.WithSnooze(0)},
	} {
		if _, err := rivermw.New(locks, opts...); !errors.Is(err, core.ErrInvalid) || !strings.HasPrefix(err.Error(), "rivermw: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := rivermw.New(nil); !errors.Is(err, core.ErrInvalid) {
		t.Error(err)
	}
}
