package taskmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestMostSpecificPatternWins(t *testing.T) {
	t.Parallel()
	store := newSpy()
	mw := taskmw.Middleware(newLocker(t, store),
		taskmw.WithType("order:*", "by-short-prefix"),
		taskmw.WithType("order:ship", "by-exact-type"),
		taskmw.WithType("order:ship*", "by-long-prefix"))
	mux := muxOf(func(context.Context, *asynq.Task) error { return nil }, mw)
	for taskType, want := range map[string]string{
		"order:ship":     "by-exact-type",
		"order:shipment": "by-long-prefix",
		"order:shop":     "by-short-prefix",
		"order:":         "by-short-prefix",
	} {
		if err := mux.ProcessTask(taskContext(t), asynq.NewTask(taskType, nil)); err != nil {
			t.Fatal(err)
		}
		if c := <-store.claims; c.Name != want {
			t.Errorf("%s took %s, want %s", taskType, c.Name, want)
		}
	}
}

func TestUnlistedTypesPassThrough(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks := newLocker(t, store)
	hold(t, store, "order:42")
	ran := false
	mux := muxOf(func(ctx context.Context, _ *asynq.Task) error {
		_, leased := core.FromContext(ctx)
		ran = !leased
		return nil
	}, shipOnly(t, locks))
	task := asynq.NewTask("other:ship", []byte(`{"order_id":42}`))
	if err := mux.ProcessTask(taskContext(t), task); err != nil || !ran {
		t.Errorf("ran: %v, error: %v", ran, err)
	}
}

func TestWrongRulesAreConstructionErrors(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New())
	keyFunc := func(context.Context, *asynq.Task) (string, error) { return "x", nil }
	for name, opts := range map[string][]taskmw.Option{
		"empty pattern":      {taskmw.WithType("", "x")},
		"blank pattern":      {taskmw.WithType(" ", "x")},
		"star in the middle": {taskmw.WithType("a*b", "x")},
		"two stars":          {taskmw.WithType("a**", "x")},
		"repeat":             {taskmw.WithType("a", "x"), taskmw.WithType("a", "y")},
		"repeated prefix":    {taskmw.WithType("a*", "x"), taskmw.WithTypeFunc("a*", keyFunc)},
		"empty key":          {taskmw.WithType("a", "")},
		"broken key":         {taskmw.WithType("a", "order:{id")},
		"source of HTTP":     {taskmw.WithType("a", "order:{query:id}")},
		"text without form":  {taskmw.WithType("a", "order:{header:id}")},
		"unknown asynq":      {taskmw.WithType("a", "order:{asynq:retries}")},
		"nil function":       {taskmw.WithTypeFunc("a", nil)},
		"nil option":         {nil},
		"impossible option":  {taskmw.WithType("a", "x", core.WithTTL(time.Microsecond))},
		"nil core option":    {taskmw.WithType("a", "x", nil)},
		"unknown action":     {taskmw.WithType("a", "x", taskmw.OnConflict(taskmw.Coalesce+1))},
		"done but to be run": {taskmw.WithType("a", "x", taskmw.OnConflict(taskmw.Coalesce), core.WithDedup(time.Hour))},
	} {
		_, err := taskmw.New(locks, opts...)
		if !errors.Is(err, core.ErrInvalid) || !strings.HasPrefix(err.Error(), "taskmw: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, l := range []*core.Locker{nil, {}} {
		if _, err := taskmw.New(l); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("no Locker: %v", err)
		}
	}
}

func TestMiddlewarePanicsAtConstruction(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New())
	defer func() {
		text, _ := recover().(string)
		if !strings.HasPrefix(text, `taskmw: WithType("a"): `) {
			t.Errorf("recovered %q", text)
		}
	}()
	taskmw.Middleware(locks, taskmw.WithType("a", "{"))
}

func TestDedupScopeIsTheTaskType(t *testing.T) {
	t.Parallel()
	var ran []string
	mux := muxOf(func(_ context.Context, task *asynq.Task) error {
		ran = append(ran, task.Type())
		return nil
	}, taskmw.Middleware(newLocker(t, memlock.New()),
		taskmw.WithType("order:*", "order:{order_id}", core.WithDedup(time.Hour)),
		taskmw.WithType("order:bill", "order:{order_id}", core.WithDedup(time.Hour))))
	for _, taskType := range []string{"order:ship", "order:bill", "order:pack", "order:ship", "order:bill", "order:pack"} {
		if err := mux.ProcessTask(taskContext(t), asynq.NewTask(taskType, shipTask().Payload())); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(ran, " "); got != "order:ship order:bill order:pack" {
		t.Errorf("ran %s", got)
	}
}

func TestUsersDedupScopeWins(t *testing.T) {
	t.Parallel()
	runs := 0
	mux := muxOf(func(context.Context, *asynq.Task) error { runs++; return nil },
		taskmw.Middleware(newLocker(t, memlock.New()),
			taskmw.WithType("order:*", "order:{order_id}", core.WithDedup(time.Hour), core.WithDedupScope("any")),
			taskmw.WithType("order:bill", "order:{order_id}", core.WithDedup(time.Hour), core.WithDedupScope("any"))))
	for _, taskType := range []string{"order:ship", "order:pack", "order:bill"} {
		if err := mux.ProcessTask(taskContext(t), asynq.NewTask(taskType, shipTask().Payload())); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

func TestRulesOptionsWinOverTheDoorsDefaults(t *testing.T) {
	t.Parallel()
	store := newSpy()
	locks := newLocker(t, store)
	release := hold(t, store, "order:42")
	<-store.claims
	result := make(chan error)
	mux := muxOf(func(context.Context, *asynq.Task) error { return nil },
		shipOnly(t, locks, core.WithWait(time.Minute), core.WithTTL(time.Minute), core.WithLabel("mine")))
	go func() { result <- mux.ProcessTask(taskContext(t), shipTask()) }()
	<-store.refused
	release()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if c := <-store.claims; c.TTL != time.Minute || c.Label != "task:order:ship:" {
		t.Errorf("claimed with %s and label %q", c.TTL, c.Label)
	}
}

func TestObserversSeeTheTemplate(t *testing.T) {
	t.Parallel()
	seen := make(chan core.Event, 2)
	locks, err := core.New(memlock.New(), core.WithObserver(func(e core.Event) {
		if e.Kind == core.EventAcquired {
			seen <- e
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	mux := muxOf(func(context.Context, *asynq.Task) error { return nil }, taskmw.Middleware(locks,
		taskmw.WithType("order:ship", "order:{order_id}"),
		taskmw.WithTypeFunc("order:*", func(context.Context, *asynq.Task) (string, error) { return "n", nil })))
	for _, step := range []struct{ taskType, want string }{
		{"order:ship", "order:{order_id}"},
		{"order:bill", "order:*"},
	} {
		if err := mux.ProcessTask(taskContext(t), asynq.NewTask(step.taskType, shipTask().Payload())); err != nil {
			t.Fatal(err)
		}
		if e := <-seen; e.Template != step.want {
			t.Errorf("template %q, want %q", e.Template, step.want)
		}
	}
	if err := locks.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
