package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
		return adapter.Text[*request](nil), errors.New("there are {field}, {route} and {text:name}")
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
	dedup := []core.Option{core.WithDedup(time.Hour), core.WithDedupScope("pay")}
	for _, row := range []struct {
		reason  adapter.Reason
		key     string
		request *request
		opts    []core.Option
		is      error
		again   bool
	}{
		{adapter.Held, "order:{text:id|int}", texts("id", "42"), nil, core.ErrHeld, true},
		{adapter.Duplicate, "order:{text:id|int}", texts("id", "42"), dedup, core.ErrDuplicate, false},
		{adapter.BadKey, "order:{text:id|int}", texts(), nil, key.ErrMissing, false},
		{adapter.BadKey, "order:{text:id|int}", texts("id", "1", "id", "01"), nil, key.ErrAmbiguous, false},
		{adapter.BadKey, "order:{text:id|int}", texts("id", "4e1"), nil, core.ErrInvalid, false},
		{adapter.Misconfigured, "order:{route}", texts(), nil, adapter.ErrMisconfigured, false},
		{adapter.Misconfigured, "mine", texts(), dedup, core.ErrInvalid, false}, // dedup cannot join
		{adapter.Unavailable, "order:{text:id|int}", texts("id", "42"), nil, core.ErrUnavailable, true},
		{adapter.Stopping, "order:{text:id|int}", texts("id", "42"), nil, core.ErrDraining, true},
		{adapter.Stopping, "order:{text:id|int}", texts("id", "42"), nil, core.ErrClosed, true},
		{adapter.Ended, "order:{text:id|int}", texts("id", "42"), nil, context.Canceled, false},
	} {
		store := locktest.NewBackend()
		locks := locktest.Locker(t, store)
		locktest.Refuse(t, store, locks, "order:42", row.is)
		ctx, end := context.WithCancel(t.Context())
		switch {
		case row.reason == adapter.Ended:
			end()
		case row.key == "mine":
			x, err := locks.TryAcquire(ctx, "mine")
			locktest.OK(t, err)
			t.Cleanup(func() { _ = x.Release(context.Background()) })
			ctx = x.Context()
		}
		out := newRule(t, locks, row.key, row.opts...).Run(ctx, row.request, mustNotRun(t))
		if out.Reason != row.reason || out.Ran() || !errors.Is(out.Err, row.is) || out.Own != nil || (out.RetryAfter() > 0) != row.again || out.RetryAfter() > time.Second ||
			out.Join() != out.Err { //nolint:errorlint // that very error
			t.Errorf("%s: %+v, %v", row.reason, out, out.RetryAfter())
		}
		if held, ok := errors.AsType[*core.HeldError](out.Err); ok && out.RetryAfter() != held.RetryAfter {
			t.Errorf("%v, and the name may be free in %v", out.RetryAfter(), held.RetryAfter)
		}
		end()
	}
}

func TestALossIsJoinedToTheWorksOwnError(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	rule := newRule(t, locktest.Memory(t), "order:{text:id|int} job:{text:id|int}", core.WithMaxHold(10*time.Millisecond))
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
				names.Check(t, value, locktest.NameOf(ctx))
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
