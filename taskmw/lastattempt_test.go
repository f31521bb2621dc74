package taskmw_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestLastAttemptWaitsForTheName(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"no retries": 0, "retries used up": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			store := newSpy()
			record, runs := recorder()
			held := make(chan struct{})
			mux := muxOf(func(ctx context.Context, _ *asynq.Task) error {
				if n, _ := asynq.GetRetryCount(ctx); n == limit {
					return nil
				}
				return errors.New("broken")
			}, record, before(held), shipOnly(t, newLocker(t, store)))
			q.serve(t, q.quick(), mux)
			var release func()
			take := func() { release = hold(t, store, "order:42"); close(held) }
			if limit == 0 {
				take()
			}
			id := q.enqueue(t, shipTask(), asynq.MaxRetry(limit))
			if limit > 0 {
				<-runs // and so has been released
				take()
			}
			<-store.refused
			if info, err := q.inspect.GetTaskInfo(q.name, id); err != nil || info.State != asynq.TaskStateActive {
				t.Errorf("while it waits: %+v, %v", info, err)
			}
			release()
			if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried != limit {
				t.Errorf("retried %d times", info.Retried)
			}
		})
	}
}

// before is a middleware that lets a task's last attempt pass once ready is closed.
func before(ready <-chan struct{}) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			retried, _ := asynq.GetRetryCount(ctx)
			if limit, _ := asynq.GetMaxRetry(ctx); retried == limit {
				<-ready
			}
			return next.ProcessTask(ctx, t)
		})
	}
}

func TestLastAttemptInVainIsArchivedWithTheReason(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	store := newSpy()
	hold(t, store, "order:42")
	told := make(chan error, 10)
	cfg := q.quick()
	cfg.ErrorHandler = asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) { told <- err })
	q.serve(t, cfg, muxOf(mustNotRun(t), shipOnly(t, newLocker(t, store))))
	id := q.enqueue(t, shipTask(), asynq.MaxRetry(0), asynq.Timeout(3*time.Second))
	info := q.await(t, id, asynq.TaskStateArchived)
	if !strings.Contains(info.LastErr, "last attempt") || !strings.Contains(info.LastErr, `"someone"`) {
		t.Errorf("the reason is %q", info.LastErr)
	}
	if conflict, ok := errors.AsType[*taskmw.ConflictError](<-told); !ok || !conflict.Last {
		t.Errorf("ErrorHandler was told of %v", conflict)
	}
}

func TestWithoutConfigureConflictsDoNotBurnRetries(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	store := newSpy()
	release := hold(t, store, "order:42")
	var log bytes.Buffer
	q.serveAsIs(t, q.quick(), muxOf(succeed, taskmw.Middleware(newLocker(t, store),
		taskmw.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
		taskmw.WithType("order:ship", "order:{order_id}"))))
	id := q.enqueue(t, shipTask(), asynq.MaxRetry(3))
	<-store.refused
	release()
	if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried != 0 || info.LastErr != "" {
		t.Errorf("retried %d times, last error %q", info.Retried, info.LastErr)
	}
	if !strings.Contains(log.String(), "taskmw.Configure") { // written before the task was completed
		t.Errorf("log: %q", log.String())
	}
}

func TestLossRetriesTheTask(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	record, runs := recorder()
	q.serve(t, q.quick(), muxOf(func(ctx context.Context, _ *asynq.Task) error {
		if n, _ := asynq.GetRetryCount(ctx); n == 0 {
			<-ctx.Done()
		}
		return nil
	}, record, shipOnly(t, newLocker(t, q.store()), core.WithMaxHold(200*time.Millisecond))))
	id := q.enqueue(t, shipTask())
	if r := <-runs; !errors.Is(r.err, core.ErrLost) {
		t.Errorf("got %v", r.err)
	}
	if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried < 1 {
		t.Error("the loss was not counted")
	}
}
