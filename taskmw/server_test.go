package taskmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/taskmw"
)

func succeed(context.Context, *asynq.Task) error { return nil }

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
	}, record, shipOnly(t, newLocker(t, q.store())))
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
	if n := q.failures(t); n != 0 {
		t.Errorf("%d failures", n)
	}
}

func TestTasksOfOneKeyNeverOverlapOverManyServers(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	var only exclusive
	work := func(context.Context, *asynq.Task) error {
		defer only.enter(t)()
		return nil
	}
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = q.enqueue(t, shipTask(), asynq.MaxRetry(1))
	}
	for range 3 {
		q.serve(t, q.quick(), muxOf(work, shipOnly(t, newLocker(t, q.store()))))
	}
	for _, id := range ids {
		q.await(t, id, asynq.TaskStateCompleted)
	}
	if n := only.runs.Load(); n != 20 {
		t.Errorf("%d runs", n)
	}
}

func TestKeysMayHaveWhatAsynqKnowsOfTheTask(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	store := newSpy()
	q.serve(t, q.quick(), muxOf(succeed, taskmw.Middleware(newLocker(t, store),
		taskmw.WithType("order:*", "{asynq:queue}/{asynq:id}/{header:tenant|text}"))))
	task := asynq.NewTaskWithHeaders("order:ship", nil, map[string]string{"tenant": "acme"})
	odd := strings.Repeat("ship:42\n", 40)
	q.await(t, q.enqueue(t, task, asynq.TaskID("ship:42")), asynq.TaskStateCompleted)
	if c := <-store.claims; c.Name != q.name+"/ship%3A42/acme" || c.Label != "task:order:ship:ship%3A42" {
		t.Errorf("claimed %s with label %s", c.Name, c.Label)
	}
	q.await(t, q.enqueue(t, task, asynq.TaskID(odd)), asynq.TaskStateCompleted)
	if c := <-store.claims; !strings.HasPrefix(c.Label, "task:order:ship:ship%3A42%0Aship") {
		t.Errorf("label %q", c.Label)
	}
}

func TestBadPayloadIsArchivedAtOnceWithTheReason(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.serve(t, q.quick(), muxOf(mustNotRun(t), shipOnly(t, newLocker(t, q.store()))))
	id := q.enqueue(t, asynq.NewTask("order:ship", []byte(`{"order_id":null}`)))
	info := q.await(t, id, asynq.TaskStateArchived)
	if info.Retried != 0 || !strings.Contains(info.LastErr, "{order_id}") || !strings.Contains(info.LastErr, "null") {
		t.Errorf("retried %d times, reason %q", info.Retried, info.LastErr)
	}
}

func TestDoneTaskIsProcessedWithoutARun(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	var only exclusive
	work := func(context.Context, *asynq.Task) error {
		defer only.enter(t)()
		return nil
	}
	q.serve(t, q.quick(), muxOf(work, shipOnly(t, newLocker(t, q.store()), core.WithDedup(time.Hour))))
	for range 3 {
		q.await(t, q.enqueue(t, shipTask()), asynq.TaskStateCompleted)
	}
	if n := only.runs.Load(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

func TestTaskIsRetriedWhileTheLockServiceIsDown(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	locks := servers.Redis(t) // of its own, to be broken
	locks.Stop()
	record, runs := recorder()
	q.serve(t, q.quick(), muxOf(succeed, record, shipOnly(t, newLocker(t, redislock.New(dial(t, locks.Addr()))))))
	id := q.enqueue(t, shipTask())
	if r := <-runs; !errors.Is(r.err, core.ErrUnavailable) || !isPlain(t, r.err) {
		t.Errorf("got %v", r.err)
	}
	<-runs // again
	locks.Restart()
	info := q.await(t, id, asynq.TaskStateCompleted)
	if info.Retried < 2 || q.failures(t) < 2 {
		t.Errorf("retried %d times, %d failures", info.Retried, q.failures(t))
	}
}
