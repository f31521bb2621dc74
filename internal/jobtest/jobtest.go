// Package jobtest is the table of cases that the middleware of every queue has to pass, each through its own framework.
package jobtest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// Work is what a job does.
type Work func(context.Context) error

// Run runs work as a job with these arguments, and returns what the queue is told.
type Run func(args string, work Work) error

// Queue is a queue with its middleware.
type Queue struct {
	// Mount makes a rule of a template. "" is none: the middleware has a rule for other jobs.
	Mount func(t *testing.T, l *core.Locker, template string, opts ...core.Option) Run
	// Told says what the queue is told of a job that did not run, and of a loss.
	Told map[Outcome]func(error) bool
	// Names are what templates with sources of the queue's own make.
	Names map[string]string
	// Verdicts are errors after which the queue does not try a job again.
	Verdicts []error
	// Label is how the label of a holder ends, "" for a label that another test looks at.
	Label string

	Typed   bool // jobs get their arguments decoded
	Wrapped bool // the framework wraps errors
	Hidden  bool // texts name neither the lock nor its holder
}

// Outcome is what becomes of a job.
type Outcome string

// The outcomes.
const (
	Held        Outcome = "held"
	Draining    Outcome = "draining"
	Closed      Outcome = "closed"
	Unavailable Outcome = "unavailable"
	BadKey      Outcome = "bad key"
	Duplicate   Outcome = "duplicate"
	Lost        Outcome = "lost"
)

// ErrBroken is a job's own error.
var ErrBroken = errors.New("broken")

const (
	args     = `{"order_id":42,"customer":{"id":"c1"},"from":"ann","to":"bob"}`
	orderKey = "order:{order_id}"
	transfer = "account:{from} account:{to}"
)

// Test runs the table.
func Test(t *testing.T, q Queue) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Queue){
		"AJobRunsUnderItsName": runs, "ARefusedJobDoesNotRun": refused, "AJobWithoutAUsableKeyDoesNotRun": keyless, "SeveralNamesAreHeldTogether": several,
		"ADuplicateDoesNotRun": duplicate, "AJobThatLostItsLockDecidesNothing": lost, "HostileValuesGetLocksOfTheirOwnNames": hostileValues,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, q)
		})
	}
}

// Locker returns a Locker that is closed with the test.
func Locker(t testing.TB, d driver.Driver) *core.Locker {
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

// Hold takes a name until the test ends.
func Hold(t testing.TB, l *core.Locker, name string) {
	t.Helper()
	x, err := l.TryAcquire(t.Context(), name, core.WithLabel("worker-1.internal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Release(context.WithoutCancel(t.Context())) })
}

// unrun is the work of a job that is refused.
func unrun(t *testing.T) Work {
	t.Helper()
	return func(context.Context) error { t.Error("it ran"); return nil }
}

func (q Queue) expect(t *testing.T, outcome Outcome, err error) {
	t.Helper()
	if !q.Told[outcome](err) {
		t.Errorf("%s: the queue is told %T %v", outcome, err, err)
	}
	if err != nil && q.Hidden && (strings.Contains(err.Error(), "order:42") || strings.Contains(err.Error(), "worker-1")) {
		t.Errorf("%s: the queue is told too much: %v", outcome, err)
	}
}

func runs(t *testing.T, q Queue) {
	store := memlock.New()
	locks, other := Locker(t, store), Locker(t, store)
	all := map[string]string{orderKey: "order:42", "customer:{customer.id}:order:{order_id}": "customer:c1:order:42", "nightly": "nightly", "": ""}
	maps.Copy(all, q.Names)
	for template, want := range all {
		err := q.Mount(t, locks, template)(args, func(ctx context.Context) error {
			x, ok := core.FromContext(ctx)
			if ok != (want != "") || ok && x.Name() != want {
				t.Errorf("%s: %v", template, x)
			}
			if ok {
				_, err := other.TryAcquire(ctx, want)
				if held, is := errors.AsType[*core.HeldError](err); !is || !strings.HasSuffix(held.Label, q.Label) {
					t.Errorf("%s: who finds it held is told %v", template, err)
				}
			}
			return ErrBroken
		})
		if err != ErrBroken && (!q.Wrapped || err == nil || !strings.Contains(err.Error(), "broken")) { //nolint:errorlint // that very error
			t.Errorf("%s: %v is not the job's own", template, err)
		}
	}
}

func refused(t *testing.T, q Queue) {
	for outcome, before := range map[Outcome]func(t *testing.T, store *memlock.Store, locks, other *core.Locker){
		Held:        func(t *testing.T, _ *memlock.Store, _, other *core.Locker) { t.Helper(); Hold(t, other, "order:42") },
		Draining:    func(t *testing.T, _ *memlock.Store, locks, _ *core.Locker) { t.Helper(); _ = locks.Drain(t.Context()) },
		Closed:      func(t *testing.T, _ *memlock.Store, locks, _ *core.Locker) { t.Helper(); _ = locks.Close(t.Context()) },
		Unavailable: func(_ *testing.T, store *memlock.Store, _, _ *core.Locker) { store.SetDown(true) },
	} {
		store := memlock.New()
		locks, other := Locker(t, store), Locker(t, store)
		before(t, store, locks, other)
		q.expect(t, outcome, q.Mount(t, locks, orderKey, core.WithWait(0))(args, unrun(t)))
		store.SetDown(false)
	}
}

func keyless(t *testing.T, q Queue) {
	for _, test := range []struct {
		key, args string
		typed     bool // a decoder leaves it as it is
	}{
		{"order:{id}", ``, false},
		{"order:{id}", `id=secret`, false},
		{"order:{id}", `{"id":"secret"`, false},
		{"order:{id}", `{"id":"secret"}{}`, false},
		{"order:{id}", `["secret"]`, false},
		{"order:{id}", `{"secret":1}`, true},
		{"order:{id}", `{"ID":"secret"}`, true},
		{"order:{id}", `{"id":"secret","id":2}`, false},
		{"order:{id}", `{"id":"secret","Id":2}`, true},
		{"order:{id}", `{"id":null}`, true},
		{"order:{id}", `{"id":""}`, true},
		{"order:{id}", `{"id":{"secret":1}}`, true},
		{"order:{id}", `{"id":["secret"]}`, true},
		{"order:{id}", `{"id":4.2}`, true},
		{"order:{id}", `{"id":1e3}`, false},
		{"order:{id|int}", `{"id":"secret"}`, true},
		{"order:{order.id}", `{"order":{"secret":1}}`, true},
		{"order:{order.id}", `{"order":"secret"}`, true},
		{"order:{id} customer:{customer}", `{"id":42}`, true},
	} {
		if q.Typed && !test.typed {
			continue
		}
		err := q.Mount(t, Locker(t, memlock.New()), test.key)(test.args, unrun(t))
		if q.expect(t, BadKey, err); err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s of %s: %v", test.key, test.args, err)
		}
	}
}

func several(t *testing.T, q Queue) {
	store := memlock.New()
	locks, other := Locker(t, store), Locker(t, store)
	run, ran := q.Mount(t, locks, transfer, core.WithWait(0)), 0
	if err := run(args, func(ctx context.Context) error {
		ran++
		for _, name := range []string{"account:ann", "account:bob"} {
			if _, err := other.TryAcquire(ctx, name); !errors.Is(err, core.ErrHeld) {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	}); err != nil || ran != 1 {
		t.Errorf("ran %d times, %v", ran, err)
	}
	Hold(t, other, "account:bob")
	q.expect(t, Held, run(args, unrun(t)))
}

func duplicate(t *testing.T, q Queue) {
	run, ran := q.Mount(t, Locker(t, memlock.New()), orderKey, core.WithDedup(time.Hour)), 0
	for i, own := range []error{ErrBroken, nil, nil} { // a job that failed is not done
		err := run(args, func(context.Context) error { ran++; return own })
		if ran != min(i+1, 2) {
			t.Errorf("ran %d times, %v", ran, err)
		}
		if i == 2 {
			q.expect(t, Duplicate, err)
		}
	}
}

func lost(t *testing.T, q Queue) {
	for _, template := range []string{orderKey, transfer} { // one lost is all lost
		run := q.Mount(t, Locker(t, memlock.New()), template, core.WithMaxHold(10*time.Millisecond))
		for _, verdict := range append([]error{nil, ErrBroken}, q.Verdicts...) {
			err := run(args, func(ctx context.Context) error {
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), core.ErrLost) {
					t.Errorf("ended by %v", context.Cause(ctx))
				}
				return verdict
			})
			q.expect(t, Lost, err)
			if verdict == ErrBroken && !q.Wrapped && !errors.Is(err, ErrBroken) { //nolint:errorlint // that very error
				t.Errorf("%v has lost the job's error", err)
			}
		}
	}
}

func hostileValues(t *testing.T, q Queue) {
	run := q.Mount(t, Locker(t, memlock.New()), hostile.Template)
	var names hostile.Names
	for what, value := range hostile.Values() {
		if !utf8.ValidString(value) {
			continue // JSON has no such strings
		}
		text, err := json.Marshal(map[string]string{"v": value})
		if err != nil {
			t.Fatal(err)
		}
		if err = run(string(text), func(ctx context.Context) error {
			x, _ := core.FromContext(ctx)
			names.Check(t, value, x.Name())
			return nil
		}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
