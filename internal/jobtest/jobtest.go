// Package jobtest is the table of cases that the middleware of every queue has to pass, each through its own framework.
package jobtest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// Work is what a job does.
type Work func(context.Context) error

// Run runs work as a job with these arguments, and returns what the queue is told.
type Run func(args string, work Work) error

// Rule is one that a middleware is made with.
type Rule struct {
	Kind string
	Key  string                                           // the template; "" for a function
	Func func(ctx context.Context) (name string, _ error) // nil is nil for the middleware, too
	Opts []core.Option
}

// Queue is a queue with its middleware.
type Queue struct {
	// Package is in front of errors of construction, "" for nothing.
	Package string
	// Kind is what Run's jobs are of, "" for a queue without kinds.
	Kind string
	// New makes the middleware with rules.
	New func(t *testing.T, l *core.Locker, rules ...Rule) (Run, error)
	// Refused are templates that cannot work, of the queue's own.
	Refused []string
	// Told says what the queue is told of a job that did not run, and of a loss, by core's error. ErrInvalid is a bad key.
	Told map[error]func(error) bool
	// Names are what templates with sources of the queue's own make.
	Names map[string]string
	// Verdicts are errors after which the queue does not try a job again.
	Verdicts []error
	// Label is how the label of a holder ends, "" for a label that another test looks at.
	Label string

	Wrapped bool // the framework wraps errors
	Hidden  bool // texts name neither the lock nor its holder
}

// ErrBroken is a job's own error.
var ErrBroken = errors.New("broken")

const (
	args     = `{"order_id":42,"customer":{"id":"c1"}}`
	orderKey = "order:{order_id}"
)

// Options are rules as the options of a queue whose rules are by kind. Its jobs are of type J.
func Options[O, J any](
	rules []Rule, of func(kind, key string, opts ...core.Option) O,
	byFunc func(kind string, name func(context.Context, J) (string, error), opts ...core.Option) O,
) (opts []O) {
	for _, r := range rules {
		switch {
		case r.Key != "":
			opts = append(opts, of(r.Kind, r.Key, r.Opts...))
		case r.Func == nil:
			opts = append(opts, byFunc(r.Kind, nil, r.Opts...))
		default:
			opts = append(opts, byFunc(r.Kind, func(ctx context.Context, _ J) (string, error) { return r.Func(ctx) }, r.Opts...))
		}
	}
	return opts
}

// Test runs the table.
func Test(t *testing.T, q Queue) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Queue){
		"AJobRunsUnderItsName": runs, "ARefusedJobDoesNotRun": refused, "AJobWithoutAUsableKeyDoesNotRun": keyless,
		"ADuplicateDoesNotRun": duplicate, "AJobThatLostItsLockDecidesNothing": lost,
		"AFunctionMakesTheName": functions, "RulesThatCannotWorkAreRefused": construction,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, q)
		})
	}
}

// mount makes a rule of a template. "" is none: the middleware has a rule for other jobs.
func (q Queue) mount(t *testing.T, l *core.Locker, template string, opts ...core.Option) Run {
	t.Helper()
	rules := []Rule{{Kind: q.Kind, Key: template, Opts: opts}}
	if template == "" && q.Kind == "" {
		return func(_ string, work Work) error { return work(t.Context()) }
	}
	if template == "" {
		rules = []Rule{{Kind: q.Kind + "Other", Key: orderKey}}
	}
	run, err := q.New(t, l, rules...)
	locktest.OK(t, err)
	return run
}

// unrun is the work of a job that is refused.
func unrun(t *testing.T) Work {
	t.Helper()
	return func(context.Context) error { t.Error("it ran"); return nil }
}

func (q Queue) expect(t *testing.T, why, err error) {
	t.Helper()
	if !q.Told[why](err) {
		t.Errorf("%v: the queue is told %T %v", why, err, err)
	}
	if err != nil && q.Hidden && (strings.Contains(err.Error(), "order:42") || strings.Contains(err.Error(), locktest.Secret)) {
		t.Errorf("%v: the queue is told too much: %v", why, err)
	}
}

func runs(t *testing.T, q Queue) {
	locks, other := locktest.Two(t)
	all := map[string]string{orderKey: "order:42", "customer:{customer.id}:order:{order_id}": "customer:c1:order:42", "nightly": "nightly", "": ""}
	maps.Copy(all, q.Names)
	for template, want := range all {
		err := q.mount(t, locks, template)(args, func(ctx context.Context) error {
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
	for _, why := range []error{core.ErrHeld, core.ErrDraining, core.ErrClosed, core.ErrUnavailable} {
		store := locktest.NewBackend()
		locks := locktest.Locker(t, store)
		locktest.Refuse(t, store, locks, "order:42", why)
		q.expect(t, why, q.mount(t, locks, orderKey, core.WithWait(0))(args, unrun(t)))
	}
}

// What is no usable value package key says; here it is not told, only where it was looked for.
func keyless(t *testing.T, q Queue) {
	for _, test := range []struct{ key, args, source string }{
		{"order:{id}", `{"secret":1}`, "id"},
		{"order:{id}", `{"id":"secret","Id":2}`, "id"},
		{"order:{id|int}", `{"id":"secret"}`, "id"},
		{"order:{order.id}", `{"order":{"secret":1}}`, "order.id"},
		{"order:{id} customer:{customer}", `{"id":42}`, "customer"},
	} {
		err := q.mount(t, locktest.Memory(t), test.key)(test.args, unrun(t))
		q.expect(t, core.ErrInvalid, err)
		if err != nil && (strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), test.source)) {
			t.Errorf("%s of %s: %v", test.key, test.args, err)
		}
	}
}

func duplicate(t *testing.T, q Queue) {
	run, ran := q.mount(t, locktest.Memory(t), orderKey, core.WithDedup(time.Hour)), 0
	for i, own := range []error{ErrBroken, nil, nil} { // a job that failed is not done
		err := run(args, func(context.Context) error { ran++; return own })
		if ran != min(i+1, 2) {
			t.Errorf("ran %d times, %v", ran, err)
		}
		if i == 2 {
			q.expect(t, core.ErrDuplicate, err)
		}
	}
}

func lost(t *testing.T, q Queue) {
	run := q.mount(t, locktest.Memory(t), orderKey, core.WithMaxHold(10*time.Millisecond))
	for _, verdict := range append([]error{nil, ErrBroken}, q.Verdicts...) {
		err := run(args, func(ctx context.Context) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), core.ErrLost) {
				t.Errorf("ended by %v", context.Cause(ctx))
			}
			return verdict
		})
		q.expect(t, core.ErrLost, err)
		if verdict == ErrBroken && !q.Wrapped && !errors.Is(err, ErrBroken) { //nolint:errorlint // that very error
			t.Errorf("%v has lost the job's error", err)
		}
	}
}

// A function's own error is the job's. Only a bad name is like a bad value.
func functions(t *testing.T, q Queue) {
	for _, c := range []struct {
		name string
		err  error
		bad  bool // as a value is: otherwise the error is told
	}{
		{"order:42", nil, false}, {"", ErrBroken, false}, {"", core.ErrInvalid, true}, {"", nil, true}, {"order 42", nil, true},
	} {
		run, err := q.New(t, locktest.Memory(t), Rule{Kind: q.Kind, Func: func(context.Context) (string, error) { return c.name, c.err }})
		locktest.OK(t, err)
		ran := false
		err = run(args, func(ctx context.Context) error {
			ran = locktest.NameOf(ctx) == c.name
			return nil
		})
		switch {
		case ran != (c.name == "order:42"):
			t.Errorf("%q, %v: ran %v", c.name, c.err, ran)
		case c.bad:
			q.expect(t, core.ErrInvalid, err)
		case c.err != nil && (err == nil || q.Told[core.ErrInvalid](err) || !strings.Contains(err.Error(), c.err.Error())), c.err == nil && err != nil:
			t.Errorf("%q, %v: the queue is told %v", c.name, c.err, err)
		}
	}
}

func construction(t *testing.T, q Queue) {
	refused := func(what string, l *core.Locker, rules ...Rule) {
		t.Helper()
		if _, err := q.New(t, l, rules...); !errors.Is(err, core.ErrInvalid) || !strings.HasPrefix(err.Error(), q.Package) {
			t.Errorf("%s: %v", what, err)
		}
	}
	locks, good := locktest.Memory(t), Rule{Kind: q.Kind, Key: orderKey}
	refused("no Locker", nil, good)
	refused("a broken option", locks, Rule{Kind: q.Kind, Key: orderKey, Opts: []core.Option{core.WithTTL(1)}})
	refused("no function", locks, Rule{Kind: q.Kind})
	for _, template := range append([]string{"order:{id", "order:{nothing:id}", "order:{id} order:{id}"}, q.Refused...) {
		refused(template, locks, Rule{Kind: q.Kind, Key: template})
	}
	if q.Kind != "" {
		refused("no kind", locks, Rule{Key: orderKey})
		refused("a kind twice", locks, good, good)
	}
}
