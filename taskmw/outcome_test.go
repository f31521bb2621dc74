package taskmw_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

// mustNotRun is the handler of tasks that are refused.
func mustNotRun(tb testing.TB) asynq.HandlerFunc {
	tb.Helper()
	return func(context.Context, *asynq.Task) error {
		tb.Error("the handler ran")
		return nil
	}
}

func TestHeldIsAConflictAndNotAFailure(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks := newLocker(t, store)
	hold(t, store, "order:42")
	err := muxOf(mustNotRun(t), shipOnly(t, locks)).ProcessTask(taskContext(t), shipTask())

	conflict, ok := errors.AsType[*taskmw.ConflictError](err)
	if !ok || conflict.Last || !errors.Is(err, taskmw.ErrConflict) || !errors.Is(err, core.ErrHeld) {
		t.Fatalf("got %v", err)
	}
	if held, ok := errors.AsType[*core.HeldError](err); !ok || held.Label != "someone" {
		t.Errorf("the holder's label is not in %v", err)
	}
	cfg := configured(t, asynq.Config{})
	if cfg.IsFailure(err) {
		t.Error("the conflict is a failure")
	}
	for range 100 {
		if d := cfg.RetryDelayFunc(3, err, shipTask()); d < 4*time.Second || d > 6*time.Second {
			t.Fatalf("retried in %s", d)
		}
	}
}

func TestUnavailableIsAPlainError(t *testing.T) {
	t.Parallel()
	store := newSpy()
	store.down.Store(true)
	err := muxOf(mustNotRun(t), shipOnly(t, newLocker(t, store))).ProcessTask(taskContext(t), shipTask())
	if !errors.Is(err, core.ErrUnavailable) || !isPlain(t, err) {
		t.Errorf("got %v", err)
	}
}

func TestClosedLockerIsAPlainError(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New())
	mux := muxOf(mustNotRun(t), shipOnly(t, locks))
	if err := locks.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := mux.ProcessTask(taskContext(t), shipTask()); !errors.Is(err, core.ErrClosed) || !isPlain(t, err) {
		t.Errorf("got %v", err)
	}
}

func TestEndedContextIsItsError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(taskContext(t))
	cancel()
	err := muxOf(mustNotRun(t), shipOnly(t, newLocker(t, memlock.New()))).ProcessTask(ctx, shipTask())
	if !errors.Is(err, context.Canceled) || !isPlain(t, err) {
		t.Errorf("got %v", err)
	}
}

// isPlain says that asynq counts err as a failure and tries again by its own rules.
func isPlain(tb testing.TB, err error) bool {
	tb.Helper()
	cfg := configured(tb, asynq.Config{RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Hour }})
	return err != nil && !errors.Is(err, asynq.SkipRetry) && !errors.Is(err, asynq.RevokeTask) &&
		cfg.IsFailure(err) && cfg.RetryDelayFunc(0, err, shipTask()) == time.Hour
}

func TestDoneTaskIsFinishedUnrun(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New())
	runs := 0
	mux := muxOf(func(context.Context, *asynq.Task) error { runs++; return nil },
		shipOnly(t, locks, core.WithDedup(time.Hour)))
	for range 3 {
		if err := mux.ProcessTask(taskContext(t), shipTask()); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

func TestFailedTaskIsNotDone(t *testing.T) {
	t.Parallel()
	runs, broken := 0, errors.New("broken")
	mux := muxOf(func(context.Context, *asynq.Task) error { runs++; return broken },
		shipOnly(t, newLocker(t, memlock.New()), core.WithDedup(time.Hour)))
	for range 2 {
		if err := mux.ProcessTask(taskContext(t), shipTask()); err != broken { //nolint:errorlint // the very value
			t.Errorf("got %v", err)
		}
	}
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
}

func TestLossEndsTheHandlersContextAndFailsTheTask(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, own := range []error{nil, broken} {
		synctest.Test(t, func(t *testing.T) {
			mux := muxOf(func(ctx context.Context, _ *asynq.Task) error {
				<-ctx.Done()
				if lost, ok := errors.AsType[*core.LostError](context.Cause(ctx)); !ok || lost.Name != "order:42" {
					t.Errorf("the cause is %v", context.Cause(ctx))
				}
				return own
			}, shipOnly(t, newLocker(t, memlock.New()), core.WithTTL(time.Second), core.WithoutRenewal()))
			err := mux.ProcessTask(taskContext(t), shipTask())
			if !errors.Is(err, core.ErrLost) || !isPlain(t, err) || own != nil && !errors.Is(err, own) {
				t.Errorf("handler returned %v, got %v", own, err)
			}
		})
	}
}

func TestFinalVerdictOfAHandlerThatHadLostItsLeaseIsRetried(t *testing.T) {
	t.Parallel()
	for _, final := range []error{asynq.SkipRetry, asynq.RevokeTask} {
		synctest.Test(t, func(t *testing.T) {
			own := &customError{"no such order"}
			mux := muxOf(func(ctx context.Context, _ *asynq.Task) error {
				<-ctx.Done()
				return fmt.Errorf("%w: %w", own, final)
			}, shipOnly(t, newLocker(t, memlock.New()), core.WithMaxHold(time.Minute)))
			err := mux.ProcessTask(taskContext(t), shipTask())
			if !isPlain(t, err) || !errors.Is(err, core.ErrLost) {
				t.Errorf("got %v", err)
			}
			if got, ok := errors.AsType[*customError](err); !ok || got != own {
				t.Errorf("the handler's error is not in %v", err)
			}
		})
	}
}

type customError struct{ text string }

func (e *customError) Error() string { return e.text }

func TestHandlersErrorsPassUnchanged(t *testing.T) {
	t.Parallel()
	inner := &core.HeldError{Name: "stock:7"}
	for _, own := range []error{
		inner, core.ErrDuplicate, core.ErrUnavailable, core.ErrInvalid, &core.LostError{Name: "stock:7", Reason: core.ReasonTaken},
		asynq.SkipRetry, fmt.Errorf("gone: %w", asynq.RevokeTask), context.DeadlineExceeded,
	} {
		mux := muxOf(func(context.Context, *asynq.Task) error { return own },
			shipOnly(t, newLocker(t, memlock.New()), core.WithDedup(time.Hour)))
		if err := mux.ProcessTask(taskContext(t), shipTask()); err != own { //nolint:errorlint // the very value
			t.Errorf("handler returned %v, got %v", own, err)
		}
	}
	if !configured(t, asynq.Config{}).IsFailure(inner) {
		t.Error("an inner ErrHeld is taken for the door's conflict")
	}
}

func TestPanicPassesThroughAfterTheRelease(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	mux := muxOf(func(context.Context, *asynq.Task) error { panic("boom") }, shipOnly(t, newLocker(t, store)))
	defer func() {
		if v := recover(); v != "boom" {
			t.Errorf("recovered %v", v)
		}
		if !isFree(t, store) {
			t.Error("the name is still held")
		}
	}()
	_ = mux.ProcessTask(taskContext(t), shipTask())
	t.Error("the panic was swallowed")
}

func TestLeaseOutlivesTheTasksContextUntilTheHandlerReturns(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	started, finish, result := make(chan struct{}), make(chan struct{}), make(chan error)
	mux := muxOf(func(ctx context.Context, _ *asynq.Task) error {
		close(started)
		<-ctx.Done()
		<-finish // deaf for a while
		return nil
	}, shipOnly(t, newLocker(t, store)))
	ctx, cancel := context.WithCancel(taskContext(t))
	go func() { result <- mux.ProcessTask(ctx, shipTask()) }()
	<-started
	cancel()
	if isFree(t, store) {
		t.Error("released while the handler runs")
	}
	close(finish)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if !isFree(t, store) {
		t.Error("not released after the handler returned")
	}
}

func TestConflictOfANestedDoorIsAConflict(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks := newLocker(t, store)
	hold(t, store, "stock")
	inner := taskmw.Middleware(locks, taskmw.WithType("*", "stock"))
	err := muxOf(mustNotRun(t), shipOnly(t, locks), inner).ProcessTask(taskContext(t), shipTask())
	if !errors.Is(err, taskmw.ErrConflict) || configured(t, asynq.Config{}).IsFailure(err) {
		t.Errorf("got %v", err)
	}
	if !isFree(t, store) {
		t.Error("the outer name is still held")
	}
}
