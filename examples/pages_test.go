package examples_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// The rules that the pages show can be made, and what they show of functions runs.

func TestTheRulesOfThePagesCanWork(t *testing.T) {
	t.Parallel()
	locks := pagesLocker(t)
	ok := func(echo.Context) error { return nil }
	echoRoutes(locks, ok, ok) // these panic
	handler := http.NotFoundHandler()
	httpRoutes(locks, handler, handler, handler)
	grpcStop(grpcRules(locks))
	taskCron(asynq.NewServeMux(), locks)
	_, inHTTP := httpConfig(locks)
	_, inGRPC := grpcFunction(locks)
	if err := errors.Join(inHTTP, inGRPC, grpcAnnotations(locks)); err != nil {
		t.Error(err)
	}
}

func TestTheFunctionsOfThePagesRun(t *testing.T) {
	t.Parallel()
	locks := pagesLocker(t)
	for name, run := range map[string]func(context.Context, *core.Locker) error{
		"do":      functionDo,
		"lease":   functionLease,
		"reentry": functionReentry,
		"dedup":   functionDedup,
		"all":     functionAll,
		"shared":  functionShared,
		"limit":   functionLimit,
		"kept":    functionMinHold,
		"value":   func(ctx context.Context, l *core.Locker) error { _, err := functionValue(ctx, l); return err },
		"wrap":    func(ctx context.Context, l *core.Locker) error { _, err := functionWrap(ctx, l); return err },
		"leader":  func(ctx context.Context, l *core.Locker) error { return functionCampaign(ctx, l, "host-1") },
		"confirm": func(ctx context.Context, l *core.Locker) error { return l.Do(ctx, "bank", functionConfirm) },
	} {
		if err := run(t.Context(), locks); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheHandOffOfThePagesRuns(t *testing.T) {
	t.Parallel()
	locks := pagesLocker(t)
	lease, err := locks.Acquire(t.Context(), "order:7")
	if err != nil {
		t.Fatal(err)
	}
	var message string
	err = functionHandOff(t.Context(), lease, func(_ context.Context, sent string) error { message = sent; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.TryAcquire(t.Context(), "order:7"); !errors.Is(err, core.ErrHeld) {
		t.Errorf("the name is free: %v", err)
	}
	if err := functionAttach(t.Context(), locks, message); err != nil {
		t.Error(err)
	}
}

func pagesLocker(t *testing.T) *core.Locker {
	t.Helper()
	locks, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return locks
}

func TestThePageOfThePagesIsMounted(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	locks, err := inspect(mux, memlock.New(), func(next http.Handler) http.Handler { return next })
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/locks/", http.NoBody))
	if w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
	if err := locks.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
