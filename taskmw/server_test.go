package taskmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestContendingTaskIsRetriedUntilTheNameIsFree(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	record, runs := recorder()
	started, finish := make(chan string, 2), make(chan struct{})
	mux := muxOf(func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		started <- id
		<-finish
		return nil
	}, record, ship(t, locktest.Locker(t, q.store()), taskmw.Retry))
	cfg := q.quick()
	cfg.ErrorHandler = asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
		t.Errorf("ErrorHandler was told: %v", err)
	})
	q.serve(t, cfg, mux)
	first := q.enqueue(t, shipTask())
	if id := <-started; id != first {
		t.Fatalf("%s runs", id)
	}
	second := q.enqueue(t, shipTask(), asynq.MaxRetry(1), asynq.TaskID("ship:42")) // fewer retries than conflicts
	for range 3 {
		held, ok := errors.AsType[*core.HeldError]((<-runs).err)
		if !ok || held.Label != "task:order:ship:"+first {
			t.Fatalf("the conflict is %v", held)
		}
	}
	info, err := q.inspect.GetTaskInfo(q.name, second)
	if err != nil || info.Retried != 0 || !strings.Contains(info.LastErr, first) {
		t.Errorf("in conflict: %+v, %v", info, err)
	}
	close(finish)
	q.await(t, first, asynq.TaskStateCompleted)
	if info := q.await(t, second, asynq.TaskStateCompleted); info.Retried != 0 {
		t.Errorf("retried %d times", info.Retried)
	}
	if all, err := q.inspect.GetQueueInfo(q.name); err != nil || all.FailedTotal != 0 {
		t.Errorf("failures: %+v, %v", all, err)
	}
}

func TestKeysMayHaveWhatAsynqKnowsOfTheTask(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	store := locktest.NewBackend()
	q.serve(t, q.quick(), muxOf(succeed, middleware(t, locktest.Locker(t, store),
		taskmw.WithType("order:*", "{asynq:queue}/{asynq:id}/{header:tenant|text}"))))
	task := asynq.NewTaskWithHeaders("order:ship", nil, map[string]string{"tenant": "acme"})
	odd := strings.Repeat("ship:42\n", 40)
	q.await(t, q.enqueue(t, task, asynq.TaskID("ship:42")), asynq.TaskStateCompleted)
	if c := <-store.Granted; c.Name != q.name+"/ship%3A42/acme" || c.Label != "task:order:ship:ship%3A42" {
		t.Errorf("claimed %s with label %s", c.Name, c.Label)
	}
	q.await(t, q.enqueue(t, task, asynq.TaskID(odd)), asynq.TaskStateCompleted)
	if c := <-store.Granted; !strings.HasPrefix(c.Label, "task:order:ship:%sha256-") {
		t.Errorf("label %q", c.Label)
	}
}

func TestLastAttemptWaitsForTheName(t *testing.T) {
	t.Parallel()
	q, store := newQueue(t), locktest.NewBackend()
	release := hold(t, store, "order:42")
	q.serve(t, q.quick(), muxOf(succeed, ship(t, locktest.Locker(t, store), taskmw.Retry)))
	id := q.enqueue(t, shipTask(), asynq.MaxRetry(0))
	<-store.Refused
	if info, err := q.inspect.GetTaskInfo(q.name, id); err != nil || info.State != asynq.TaskStateActive {
		t.Errorf("while it waits: %+v, %v", info, err)
	}
	release()
	if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried != 0 {
		t.Errorf("retried %d times", info.Retried)
	}
}

func TestADrainingServerPutsTasksBack(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"with another attempt": 1, "on its last attempt": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			locks := locktest.Locker(t, q.store())
			locktest.OK(t, locks.Drain(t.Context()))
			begun := make(chan struct{}, 100)
			tell := func(next asynq.Handler) asynq.Handler {
				return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
					begun <- struct{}{}
					return next.ProcessTask(ctx, task)
				})
			}
			cfg := q.quick()
			cfg.ShutdownTimeout = 100 * time.Millisecond
			srv := q.serve(t, cfg, muxOf(succeed, tell, ship(t, locks, taskmw.Retry)))
			id := q.enqueue(t, shipTask(), asynq.MaxRetry(limit))
			<-begun
			srv.Shutdown()
			q.serve(t, q.quick(), muxOf(succeed, ship(t, locktest.Locker(t, q.store()), taskmw.Retry)))
			if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried != 0 {
				t.Errorf("it counted as a failure: %+v", info)
			}
		})
	}
}
