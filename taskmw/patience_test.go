package taskmw_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestWithoutConfigureTheDoorWaitsAndWarnsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		var log bytes.Buffer
		runs := 0
		mux := muxOf(func(context.Context, *asynq.Task) error { runs++; return nil },
			taskmw.Middleware(newLocker(t, store),
				taskmw.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
				taskmw.WithType("order:ship", "order:{order_id}")))
		release := hold(t, store, "order:42")
		time.AfterFunc(time.Minute, release)
		for range 2 {
			if err := mux.ProcessTask(t.Context(), shipTask()); err != nil {
				t.Error(err)
			}
		}
		if runs != 2 {
			t.Errorf("%d runs", runs)
		}
		if strings.Count(log.String(), "level=WARN") != 1 || !strings.Contains(log.String(), "taskmw.Configure") {
			t.Errorf("log: %s", log.String())
		}
	})
}

func TestConfiguredServerIsNotWarnedAbout(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	mux := muxOf(func(context.Context, *asynq.Task) error { return nil },
		taskmw.Middleware(newLocker(t, memlock.New()),
			taskmw.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			taskmw.WithType("order:ship", "order:{order_id}")))
	if err := mux.ProcessTask(taskContext(t), shipTask()); err != nil || log.Len() > 0 {
		t.Errorf("error %v, log: %s", err, log.String())
	}
}

func TestWaitingEndsBeforeTheTasksTimeDoes(t *testing.T) {
	t.Parallel()
	for _, left := range []time.Duration{time.Second, time.Minute, 30 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			hold(t, store, "order:42")
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			began := time.Now()
			err := muxOf(mustNotRun(t), shipOnly(t, newLocker(t, store))).ProcessTask(ctx, shipTask())
			if !errors.Is(err, taskmw.ErrConflict) || ctx.Err() != nil {
				t.Errorf("with %s: %v, context: %v", left, err, ctx.Err())
			}
			if waited := time.Since(began); waited < left*9/10 || left-waited > 260*time.Millisecond {
				t.Errorf("with %s: waited %s", left, waited)
			}
		})
	}
}

func TestTimeThatIsOverOrEndlessIsNoError(t *testing.T) {
	t.Parallel()
	for _, left := range []time.Duration{time.Microsecond, 100 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			mux := muxOf(func(context.Context, *asynq.Task) error { return nil }, shipOnly(t, newLocker(t, memlock.New())))
			if err := mux.ProcessTask(ctx, shipTask()); err != nil {
				t.Errorf("with %s: %v", left, err)
			}
		})
	}
}

func TestWaitingEndsWithTheTasksContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		hold(t, store, "order:42")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		err := muxOf(mustNotRun(t), shipOnly(t, newLocker(t, store))).ProcessTask(ctx, shipTask())
		if !errors.Is(err, context.Canceled) || !errors.Is(err, core.ErrHeld) {
			t.Errorf("got %v", err)
		}
	})
}
