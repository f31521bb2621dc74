package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// request is one of a framework that does not exist.
type request struct {
	text  map[string][]string
	field string
}

func sources(name string) (adapter.Source[*request], error) {
	text, ok := strings.CutPrefix(name, "text:")
	switch {
	case ok:
		return adapter.Text(func(_ context.Context, r *request) (string, error) { return adapter.Only(r.text[text]) }), nil
	case name == "field":
		return adapter.Typed(func(_ context.Context, r *request) (string, error) { return r.field, nil }), nil
	case name == "route":
		return adapter.Typed(func(context.Context, *request) (string, error) {
			return "", fmt.Errorf("%w: no such parameter", adapter.ErrMisconfigured)
		}), nil
	default:
		return adapter.Source[*request]{}, errors.New("there are {field}, {route} and {text:name}")
	}
}

func texts(of ...string) *request {
	r := &request{text: make(map[string][]string)}
	for pair := range slices.Chunk(of, 2) {
		r.text[pair[0]] = append(r.text[pair[0]], pair[1])
	}
	return r
}

func newRule(t *testing.T, l *core.Locker, template string, opts ...core.Option) *adapter.Rule[*request] {
	t.Helper()
	k, err := adapter.NewKey(template, sources)
	locktest.OK(t, err)
	r, err := adapter.NewRule(l, k, append([]core.Option{core.WithWait(0)}, opts...)...)
	locktest.OK(t, err)
	return r
}

func nothing(context.Context) error { return nil }

func mustNotRun(t *testing.T) func(context.Context) error {
	t.Helper()
	return func(context.Context) error { t.Error("it ran"); return nil }
}

func TestAKeyMakesItsNamesOfTheValues(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		template string
		request  *request
		want     string
	}{
		{"order:{text:id|int}", texts("id", "042"), "order:42"},
		{"order:{text:id|text}", texts("id", "042", "id", "042"), "order:042"},
		{"order:{field}", &request{field: "042"}, "order:042"},
		{"order:{field|int}", &request{field: "042"}, "order:42"},
		{"account:{text:from|int} account:{text:to|int}", texts("from", "2", "to", "+1"), "account:2 account:1"},
		{"jobs:nightly", texts(), "jobs:nightly"},
	} {
		k, err := adapter.NewKey(row.template, sources)
		locktest.OK(t, err)
		if names, err := k.Names(t.Context(), row.request); err != nil || strings.Join(names, " ") != row.want || k.String() != row.template {
			t.Errorf("%s: %q, %v", row.template, names, err)
		}
	}
}

func TestAKeyThatCannotWorkIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for template, says := range map[string]string{
		"order:{text:id}":             "{text:id|int}, {text:id|uuid} or {text:id|text}",
		"a:{field} b:{text:id}":       "text has no type",
		"order:{query:id}":            "there are {field}, {route} and {text:name}",
		"order:{field":                "brace",
		"order:{field|integer}":       "int, uuid or text",
		"order: {field}":              "no source",
		"order:{field} order:{field}": "twice",
		"":                            "empty",
	} {
		if _, err := adapter.NewKey(template, sources); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", template, err, says)
		}
	}
	k, _ := adapter.NewKey("order:{field}", sources)
	_, noLocker := adapter.NewRule(nil, k)
	_, badOption := adapter.NewRule(locktest.Memory(t), k, core.WithTTL(1))
	_, noFunction := adapter.KeyFunc[*request]("x", nil)
	_, noKey := adapter.NewRule(locktest.Memory(t), adapter.Key[*request]{})
	for _, err := range []error{noLocker, badOption, noFunction, noKey} {
		if !errors.Is(err, core.ErrInvalid) {
			t.Error(err)
		}
	}
}

func TestWorkRunsUnderItsNamesAndItsErrorIsUntouched(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	rule := newRule(t, locktest.Memory(t), "account:{text:from|int} account:{text:to|int}")
	out := rule.Run(t.Context(), texts("from", "2", "to", "1"), func(ctx context.Context) error {
		for _, name := range []string{"account:1", "account:2"} {
			if f, err := core.FenceFor(ctx, name); err != nil || f == 0 {
				t.Errorf("%s: %d, %v", name, f, err)
			}
		}
		return own
	})
	if out.Reason != adapter.Done || !out.Ran() || out.Own != own || out.Join() != own || out.RetryAfter() != 0 { //nolint:errorlint // that very error
		t.Errorf("%+v", out)
	}
	if out := rule.Run(t.Context(), texts("from", "2", "to", "1"), nothing); out.Join() != nil {
		t.Errorf("%+v", out)
	}
}

func TestWorkDoesNotRunAndTheOutcomeSaysWhy(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason  adapter.Reason
		request *request
		before  func(store *memlock.Store, locks, other *core.Locker, end func()) error
		opts    []core.Option
		is      error
		again   bool
	}{
		{adapter.Held, nil, func(_ *memlock.Store, _, other *core.Locker, _ func()) error {
			locktest.Hold(t, other, "order:42")
			return nil
		}, nil, core.ErrHeld, true},
		{adapter.Duplicate, nil, func(_ *memlock.Store, _, other *core.Locker, _ func()) error {
			return other.Do(t.Context(), "order:42", nothing, core.WithDedup(time.Hour))
		}, []core.Option{core.WithDedup(time.Hour)}, core.ErrDuplicate, false},
		{adapter.BadKey, texts(), nil, nil, key.ErrMissing, false},
		{adapter.BadKey, texts("id", "1", "id", "01"), nil, nil, key.ErrAmbiguous, false},
		{adapter.BadKey, texts("id", "4e1"), nil, nil, core.ErrInvalid, false},
		{adapter.Unavailable, nil, func(store *memlock.Store, _, _ *core.Locker, _ func()) error {
			store.SetDown(true)
			return nil
		}, nil, core.ErrUnavailable, true},
		{adapter.Stopping, nil, func(_ *memlock.Store, locks, _ *core.Locker, _ func()) error { return locks.Drain(t.Context()) }, nil, core.ErrDraining, true},
		{adapter.Stopping, nil, func(_ *memlock.Store, locks, _ *core.Locker, _ func()) error { return locks.Close(t.Context()) }, nil, core.ErrClosed, true},
		{adapter.Ended, nil, func(_ *memlock.Store, _, _ *core.Locker, end func()) error { end(); return nil }, nil, context.Canceled, false},
	} {
		store := memlock.New()
		locks, other := locktest.Locker(t, store), locktest.Locker(t, store)
		ctx, end := context.WithCancel(t.Context())
		if row.before != nil {
			locktest.OK(t, row.before(store, locks, other, end))
		}
		if row.request == nil {
			row.request = texts("id", "42")
		}
		out := newRule(t, locks, "order:{text:id|int}", row.opts...).Run(ctx, row.request, mustNotRun(t))
		if out.Reason != row.reason || out.Ran() || !errors.Is(out.Err, row.is) || out.Own != nil || (out.RetryAfter() > 0) != row.again || out.RetryAfter() > time.Second ||
			out.Join() != out.Err { //nolint:errorlint // that very error
			t.Errorf("%s: %+v, %v", row.reason, out, out.RetryAfter())
		}
		store.SetDown(false)
		end()
	}
}

func TestARuleThatCannotWorkWhereItStandsIsMisconfigured(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	if out := newRule(t, locks, "order:{route}").Run(t.Context(), texts(), mustNotRun(t)); out.Reason != adapter.Misconfigured {
		t.Errorf("%+v", out)
	}
	rule := newRule(t, locks, "order:{text:id|int}", core.WithDedup(time.Hour))
	locktest.OK(t, locks.Do(t.Context(), "order:42", func(ctx context.Context) error { // dedup cannot join
		if out := rule.Run(ctx, texts("id", "42"), mustNotRun(t)); out.Reason != adapter.Misconfigured || !errors.Is(out.Err, core.ErrInvalid) {
			t.Errorf("%+v", out)
		}
		return nil
	}))
}

func TestALossIsJoinedToTheWorksOwnError(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	rule := newRule(t, locktest.Memory(t), "order:{text:id|int}", core.WithMaxHold(10*time.Millisecond))
	for _, own := range []error{nil, own} {
		out := rule.Run(t.Context(), texts("id", "42"), func(ctx context.Context) error {
			<-ctx.Done()
			return own
		})
		if out.Reason != adapter.Lost || !out.Ran() || !errors.Is(out.Err, core.ErrLost) || out.Own != own || //nolint:errorlint // that very error
			!errors.Is(out.Join(), core.ErrLost) || own != nil && !errors.Is(out.Join(), own) || out.RetryAfter() != 0 {
			t.Errorf("%+v", out)
		}
	}
}

// Such an error looks like one of this rule's, and is not.
func TestWhatALockInsideSaysIsTheWorksOwn(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	for _, own := range []error{&core.HeldError{Name: "x"}, &core.LostError{Name: "x"}, core.ErrInvalid, core.ErrUnavailable, core.ErrDraining} {
		rule := newRule(t, locks, "order:{text:id|int}", core.WithDedup(time.Hour))
		for range 2 { // not done, so it runs again
			out := rule.Run(t.Context(), texts("id", "42"), func(context.Context) error { return own })
			if out.Reason != adapter.Done || out.Own != own || out.Err != nil { //nolint:errorlint // that very error
				t.Errorf("%v: %+v", own, out)
			}
		}
	}
}

func TestErrorsOfCoreHaveTheirReason(t *testing.T) {
	t.Parallel()
	held, lost := &core.HeldError{Name: "order:42"}, &core.LostError{Name: "order:42"}
	for _, row := range []struct {
		err  error
		want adapter.Reason
	}{
		{nil, 0}, {io.EOF, 0}, {context.Canceled, 0},
		{held, adapter.Held}, {fmt.Errorf("reserve: %w", held), adapter.Held}, {&core.DuplicateError{}, adapter.Duplicate},
		{core.ErrInvalid, adapter.BadKey}, {core.ErrUnavailable, adapter.Unavailable}, {core.ErrReleased, adapter.Misconfigured},
		{core.ErrClosed, adapter.Stopping}, {core.ErrDraining, adapter.Stopping},
		{errors.Join(context.Canceled, core.ErrUnavailable), adapter.Ended}, {errors.Join(context.DeadlineExceeded, core.ErrUnavailable), adapter.Ended},
		{errors.Join(context.Canceled, lost), adapter.Lost}, {errors.Join(held, lost), adapter.Lost},
	} {
		if got := adapter.ReasonOf(row.err); got != row.want {
			t.Errorf("%v: %s, want %s", row.err, got, row.want)
		}
	}
}

func TestAFunctionsNameIsCheckedAndItsErrorKept(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	for _, row := range []struct {
		name   string
		err    error
		reason adapter.Reason
		is     error
	}{
		{"order:42", nil, adapter.Done, nil},
		{"", nil, adapter.BadKey, core.ErrInvalid},
		{"order 42", nil, adapter.BadKey, core.ErrInvalid},
		{"order:42", own, adapter.BadKey, own},
		{"order:42", core.ErrHeld, adapter.BadKey, core.ErrHeld},
	} {
		k, err := adapter.KeyFunc("own", func(context.Context, *request) (string, error) { return row.name, row.err })
		locktest.OK(t, err)
		rule, err := adapter.NewRule(locktest.Memory(t), k)
		locktest.OK(t, err)
		if out := rule.Run(t.Context(), texts(), nothing); out.Reason != row.reason || !errors.Is(out.Err, row.is) {
			t.Errorf("%q, %v: %+v", row.name, row.err, out)
		}
	}
}

func TestObserversSeeTheTemplates(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 2)
	locks := locktest.Locker(t, memlock.New(), core.WithObserver(func(e core.Event) {
		if e.Kind == core.EventAcquired {
			seen <- e.Template
		}
	}))
	rule := newRule(t, locks, "order:{text:id|int}")
	rule.Run(t.Context(), texts("id", "42"), nothing)
	rule.Run(t.Context(), texts("id", "42"), nothing, core.WithTemplate("other"))
	if first, second := <-seen, <-seen; first != "order:{text:id|int}" || second != "other" {
		t.Errorf("%q, %q", first, second)
	}
}

func TestHostileValuesGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	document := adapter.Document[*request]{
		JSON: map[string]func(*request) []byte{"": func(r *request) []byte {
			doc, _ := json.Marshal(map[string]string{"v": r.field})
			return doc
		}},
		Text:  map[string]func(*request, string) string{"text": func(r *request, _ string) string { return r.field }},
		Known: map[string]func(context.Context, *request) string{"known:v": func(_ context.Context, r *request) string { return r.field }},
	}
	for _, source := range []string{"{v}", "{text:v|text}", "{known:v}"} {
		k, err := adapter.NewKey(strings.Replace(hostile.Template, "{v}", source, 1), document.Source)
		locktest.OK(t, err)
		rule, err := adapter.NewRule(locktest.Memory(t), k)
		locktest.OK(t, err)
		var names hostile.Names
		for what, value := range hostile.Values() {
			if source == "{v}" && !utf8.ValidString(value) {
				continue // JSON has no such strings
			}
			out := rule.Run(t.Context(), &request{field: value}, func(ctx context.Context) error {
				x, _ := core.FromContext(ctx)
				names.Check(t, value, x.Name())
				return nil
			})
			if out.Reason != adapter.Done {
				t.Errorf("%s, %s: %+v", source, what, out)
			}
		}
	}
}

func TestADocumentSaysWhichSourcesItHas(t *testing.T) {
	t.Parallel()
	document := adapter.Document[*request]{
		JSON:  map[string]func(*request) []byte{"": nil, "metadata": nil},
		Text:  map[string]func(*request, string) string{"header": nil},
		Known: map[string]func(context.Context, *request) string{"asynq:id": nil},
	}
	const all = "there are {asynq:id}, {header:name|form}, {json.path}, {metadata:json.path}"
	if _, err := adapter.NewKey("order:{query:id}", document.Source); !errors.Is(err, core.ErrInvalid) || !strings.HasSuffix(err.Error(), all) {
		t.Error(err)
	}
}

func TestRulesHaveANameEachAndDedupOfTheirOwn(t *testing.T) {
	t.Parallel()
	if _, err := adapter.NewRules[*request](nil); !errors.Is(err, core.ErrInvalid) {
		t.Error(err)
	}
	rules, err := adapter.NewRules[*request](locktest.Memory(t))
	locktest.OK(t, err)
	by := func(context.Context, *request) (string, error) { return "order:42", nil }
	locktest.OK(t, errors.Join(rules.Add("pay", "order:{field}", sources, core.WithDedup(time.Hour)), rules.AddFunc("ship", by, core.WithDedup(time.Hour))))
	for _, name := range []string{"pay", " "} {
		if err := rules.AddFunc(name, by); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, want := range []adapter.Reason{adapter.Done, adapter.Duplicate} {
		for _, name := range []string{"pay", "ship"} { // under one name, and each is done by itself
			if out := rules.Of(name).Run(t.Context(), &request{field: "42"}, nothing); out.Reason != want {
				t.Errorf("%s: %+v", name, out)
			}
		}
	}
	if rules.Of("mail") != nil {
		t.Error("a rule that nobody has added")
	}
}
