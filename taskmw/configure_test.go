package taskmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/taskmw"
)

func conflict(last bool) error {
	return &taskmw.ConflictError{Err: &core.HeldError{Name: "order:42"}, Last: last}
}

func TestConfigureKeepsWhatTheConfigHas(t *testing.T) {
	t.Parallel()
	type key struct{}
	ignored := errors.New("ignored")
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
	other := errors.New("other")
	if cfg.Concurrency != 7 || cfg.BaseContext().Value(key{}) != "base" {
		t.Error("a field of the config is lost")
	}
	for err, failure := range map[error]bool{other: true, ignored: false, conflict(false): false, core.ErrHeld: true} {
		if cfg.IsFailure(err) != failure {
			t.Errorf("IsFailure(%v) is %v", err, !failure)
		}
		cfg.ErrorHandler.HandleError(t.Context(), shipTask(), err)
	}
	if d := cfg.RetryDelayFunc(3, other, shipTask()); d != 3*time.Hour {
		t.Errorf("other errors are retried in %s", d)
	}
	cfg.ErrorHandler.HandleError(t.Context(), shipTask(), conflict(true))
	if len(told) != 4 {
		t.Errorf("ErrorHandler was told of %v", told)
	}
}

func TestConfigureOfAnEmptyConfigKeepsAsynqsDefaults(t *testing.T) {
	t.Parallel()
	var cfg asynq.Config
	taskmw.Configure(&cfg)
	if cfg.ErrorHandler != nil {
		t.Error("an ErrorHandler out of nothing")
	}
	if !cfg.IsFailure(errors.New("x")) || cfg.IsFailure(nil) {
		t.Error("IsFailure is not asynq's")
	}
	if d := cfg.RetryDelayFunc(2, errors.New("x"), shipTask()); d < 31*time.Second || d > 121*time.Second {
		t.Errorf("RetryDelayFunc is not asynq's: %s", d)
	}
}

func TestConfigureAgainCountsItsOwnOptions(t *testing.T) {
	t.Parallel()
	var cfg asynq.Config
	taskmw.Configure(&cfg, taskmw.WithConflictDelay(time.Hour), taskmw.WithConflictDelay(time.Minute))
	if d := cfg.RetryDelayFunc(0, conflict(false), shipTask()); d < 48*time.Second || d > 72*time.Second {
		t.Errorf("retried in %s", d)
	}
	taskmw.Configure(&cfg, taskmw.WithConflictDelay(0))
	if d := cfg.RetryDelayFunc(0, conflict(false), shipTask()); d != 0 {
		t.Errorf("retried in %s", d)
	}
}

func TestConfigureRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]taskmw.ConfigOption{
		"nil":      nil,
		"negative": taskmw.WithConflictDelay(-1),
		"overflow": taskmw.WithConflictDelay(1<<63 - 1),
	} {
		cfg := asynq.Config{Concurrency: 7}
		got, err := taskmw.Configured(cfg, o)
		if !errors.Is(err, core.ErrInvalid) || got.IsFailure != nil {
			t.Errorf("%s: %v", name, err)
		}
		mustPanic(t, name, func() { taskmw.Configure(&cfg, o) })
	}
	mustPanic(t, "nil config", func() { taskmw.Configure(nil) })
}

func mustPanic(tb testing.TB, name string, fn func()) {
	tb.Helper()
	defer func() {
		tb.Helper()
		if text, _ := recover().(string); !strings.HasPrefix(text, "taskmw: ") {
			tb.Errorf("%s: recovered %q", name, text)
		}
	}()
	fn()
}
