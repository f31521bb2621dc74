package taskmw_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestTheMostSpecificPatternWinsAndOthersPassThrough(t *testing.T) {
	t.Parallel()
	rules := []taskmw.Option{
		taskmw.WithType("order:*", "by-short-prefix"),
		taskmw.WithType("order:ship*", "by-long-prefix"),
		taskmw.WithType("order:ship", "by-exact-type"),
	}
	for range 2 { // in either order
		slices.Reverse(rules)
		store := locktest.NewBackend()
		mux := muxOf(succeed, middleware(t, locktest.Locker(t, store), rules...))
		for taskType, want := range map[string]string{
			"order:ship": "by-exact-type", "order:shipment": "by-long-prefix", "order:shop": "by-short-prefix", "order:": "by-short-prefix", "other:ship": "",
		} {
			locktest.OK(t, mux.ProcessTask(taskContext(t), asynq.NewTask(taskType, nil)))
			var got string
			if len(store.Granted) > 0 {
				got = (<-store.Granted).Name
			}
			if got != want {
				t.Errorf("%s took %q, want %q", taskType, got, want)
			}
		}
	}
}

func TestWrongRulesAreConstructionErrors(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	keyFunc := func(context.Context, *asynq.Task) (string, error) { return "x", nil }
	for name, c := range map[string]struct {
		says string
		opts []taskmw.Option
	}{
		"empty pattern":       {"a pattern is", []taskmw.Option{taskmw.WithType("", "x")}},
		"blank pattern":       {"a pattern is", []taskmw.Option{taskmw.WithType(" ", "x")}},
		"star in the middle":  {"a pattern is", []taskmw.Option{taskmw.WithType("a*b", "x")}},
		"two stars":           {"a pattern is", []taskmw.Option{taskmw.WithType("a**", "x")}},
		"no UTF-8":            {"a pattern is", []taskmw.Option{taskmw.WithTypeFunc("a\xff", keyFunc)}},
		"control character":   {"a pattern is", []taskmw.Option{taskmw.WithTypeFunc("a\n", keyFunc)}},
		"repeated prefix":     {"has a rule already", []taskmw.Option{taskmw.WithType("a*", "x"), taskmw.WithTypeFunc("a*", keyFunc)}},
		"text without form":   {"|text", []taskmw.Option{taskmw.WithType("a", "order:{header:id}")}},
		"nil option":          {"nil option", []taskmw.Option{nil}},
		"nil core option":     {"nil", []taskmw.Option{taskmw.WithType("a", "x", nil)}},
		"unknown action":      {"there are Retry", []taskmw.Option{taskmw.WithType("a", "x").OnConflict(taskmw.Coalesce + 1)}},
		"done but to be run":  {"WithDedup", []taskmw.Option{taskmw.WithType("a", "x", core.WithDedup(time.Hour)).OnConflict(taskmw.Coalesce)}},
		"skip of several":     {"not with several keys", []taskmw.Option{taskmw.WithType("a", both).OnConflict(taskmw.Skip)}},
		"coalesce of several": {"not with several keys", []taskmw.Option{taskmw.WithType("a", both).OnConflict(taskmw.Coalesce)}},
	} {
		_, err := taskmw.New(locks, c.opts...)
		if !errors.Is(err, core.ErrInvalid) || !strings.HasPrefix(err.Error(), "taskmw: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	locktest.Panics(t, "taskmw: ", func() { taskmw.Middleware(locks, taskmw.WithType("a", "{")) })
}

func TestTheDedupScopeIsTheTaskType(t *testing.T) {
	t.Parallel()
	types := []string{"order:ship", "order:bill", "order:pack", "order:ship", "order:bill", "order:pack"}
	for want, opts := range map[string][]core.Option{
		"order:ship order:bill order:pack": {core.WithDedup(time.Hour)},
		"order:ship":                       {core.WithDedup(time.Hour), core.WithDedupScope("any")}, // the user's wins
	} {
		var ran []string
		mux := muxOf(func(_ context.Context, task *asynq.Task) error {
			ran = append(ran, task.Type())
			return nil
		}, middleware(t, locktest.Memory(t),
			taskmw.WithType("order:*", "order:{order_id}", opts...), taskmw.WithType("order:bill", "order:{order_id}", opts...)))
		for _, taskType := range types {
			locktest.OK(t, mux.ProcessTask(taskContext(t), asynq.NewTask(taskType, shipTask().Payload())))
		}
		if got := strings.Join(ran, " "); got != want {
			t.Errorf("ran %s, want %s", got, want)
		}
	}
}

func TestConfigureKeepsWhatTheConfigHas(t *testing.T) {
	t.Parallel()
	type key struct{}
	ignored, other := errors.New("ignored"), errors.New("other")
	var told []error
	cfg := asynq.Config{
		Concurrency:    7,
		BaseContext:    func() context.Context { return context.WithValue(context.Background(), key{}, "base") },
		IsFailure:      func(err error) bool { return !errors.Is(err, ignored) },
		RetryDelayFunc: func(n int, _ error, _ *asynq.Task) time.Duration { return time.Duration(n) * time.Hour },
		ErrorHandler: asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
			told = append(told, err)
		}),
	}
	taskmw.Configure(&cfg)
	if cfg.Concurrency != 7 || cfg.BaseContext().Value(key{}) != "base" {
		t.Error("a field of the config is lost")
	}
	store := memlock.New()
	hold(t, store, "order:42")
	conflict := muxOf(mustNotRun(t), ship(t, locktest.Locker(t, store), taskmw.Retry)).ProcessTask(cfg.BaseContext(), shipTask())
	final := errors.Join(conflict, asynq.SkipRetry) // it archives the task
	for err, failure := range map[error]bool{other: true, ignored: false, conflict: false, final: false, core.ErrHeld: true} {
		if cfg.IsFailure(err) != failure {
			t.Errorf("IsFailure(%v) is %v", err, !failure)
		}
		cfg.ErrorHandler.HandleError(t.Context(), shipTask(), err)
	}
	if d := cfg.RetryDelayFunc(3, other, shipTask()); d != 3*time.Hour {
		t.Errorf("other errors are retried in %s", d)
	}
	if len(told) != 4 { // and not of the conflict
		t.Errorf("ErrorHandler was told of %v", told)
	}
	empty := configured(t, asynq.Config{})
	if d := empty.RetryDelayFunc(2, other, shipTask()); empty.ErrorHandler != nil || !empty.IsFailure(other) || empty.IsFailure(nil) || d < 31*time.Second || d > 121*time.Second {
		t.Errorf("asynq's defaults are lost: retried in %s", d)
	}
}

func TestTheConflictDelayIsTheLastOneAndNothingImpossible(t *testing.T) {
	t.Parallel()
	const year, refused = 365 * 24 * time.Hour, -1
	store, cfg := memlock.New(), configured(t, asynq.Config{})
	hold(t, store, "order:42")
	for delay, from := range map[time.Duration]time.Duration{
		time.Minute: 48 * time.Second, year: year * 4 / 5, 0: 0, -1: refused, year + 1: refused, 1<<63 - 1: refused,
	} {
		mw, err := taskmw.New(locktest.Locker(t, store), taskmw.WithConflictDelay(time.Hour), taskmw.WithConflictDelay(delay),
			taskmw.WithType("order:ship", "order:{order_id}"))
		if (from == refused) != errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v", delay, err)
		}
		if err != nil {
			continue
		}
		conflict := muxOf(mustNotRun(t), mw).ProcessTask(taskContext(t), shipTask())
		for range 100 {
			if d := cfg.RetryDelayFunc(0, conflict, shipTask()); d < from || d > from*3/2 {
				t.Fatalf("%s: retried in %s", delay, d)
			}
		}
	}
}
