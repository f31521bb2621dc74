package taskmw_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/taskmw"
)

// deaf is a handler whose first run ignores its context and ends when finish is closed.
type deaf struct {
	exclusive
	started, finish, ended chan struct{}
	told                   chan struct{} // closed when the context of the first run has ended
}

func newDeaf() *deaf {
	return &deaf{
		started: make(chan struct{}), finish: make(chan struct{}), ended: make(chan struct{}), told: make(chan struct{}),
	}
}

func (d *deaf) handler(t *testing.T) asynq.HandlerFunc {
	t.Helper()
	return func(ctx context.Context, _ *asynq.Task) error {
		defer d.enter(t)()
		if d.runs.Load() == 1 {
			context.AfterFunc(ctx, func() { close(d.told) })
			defer close(d.ended)
			close(d.started)
			<-d.finish
		}
		return nil
	}
}

// abandon makes a server give up the first run of a task after a shutdown that does not
// wait for it, and has a second server pick the task up while that run goes on. It returns
// the ID of the task.
func (d *deaf) abandon(t *testing.T, q *queue, opts ...core.Option) (id string) {
	t.Helper()
	cfg := q.quick()
	cfg.ShutdownTimeout = 10 * time.Millisecond
	first := q.serve(t, cfg, muxOf(d.handler(t), shipOnly(t, newLocker(t, q.store()), opts...)))
	id = q.enqueue(t, shipTask())
	<-d.started
	first.Shutdown() // abandons the run, and pushes the task back

	record, runs := recorder()
	q.serve(t, q.quick(), muxOf(d.handler(t), record, shipOnly(t, newLocker(t, q.store()), opts...)))
	for range 2 {
		r := <-runs
		if again, _ := asynq.GetTaskID(r.ctx); again != id || !errors.Is(r.err, taskmw.ErrConflict) {
			t.Errorf("redelivered while it runs: task %s, %v", again, r.err)
		}
	}
	return id
}

func TestRedeliveredTaskNeitherOverlapsNorGetsLost(t *testing.T) {
	t.Parallel()
	q, d := newQueue(t), newDeaf()
	id := d.abandon(t, q)
	close(d.finish)
	<-d.ended
	info := q.await(t, id, asynq.TaskStateCompleted)
	if n := d.runs.Load(); n != 2 || info.Retried != 0 {
		t.Errorf("%d runs, retried %d times", n, info.Retried)
	}
}

func TestRedeliveredTaskThatSucceededMeanwhileIsFinishedUnrun(t *testing.T) {
	t.Parallel()
	q, d := newQueue(t), newDeaf()
	id := d.abandon(t, q, core.WithDedup(time.Hour))
	close(d.finish)
	<-d.ended
	q.await(t, id, asynq.TaskStateCompleted)
	if n := d.runs.Load(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

func TestTimedOutTaskDoesNotOverlapWithItself(t *testing.T) {
	t.Parallel()
	q, d := newQueue(t), newDeaf()
	record, runs := recorder()
	q.serve(t, q.quick(), muxOf(d.handler(t), record, shipOnly(t, newLocker(t, q.store()))))
	id := q.enqueue(t, shipTask(), asynq.MaxRetry(3), asynq.Timeout(time.Second))
	<-d.started
	for range 2 { // the first run tells nothing: it goes on
		if r := <-runs; !errors.Is(r.err, taskmw.ErrConflict) {
			t.Errorf("after the timeout: %v", r.err)
		}
	}
	close(d.finish)
	<-d.ended
	info := q.await(t, id, asynq.TaskStateCompleted)
	if n := d.runs.Load(); n != 2 || info.Retried != 1 {
		t.Errorf("%d runs, retried %d times", n, info.Retried)
	}
}

func TestTimedOutTaskThatSucceededMeanwhileIsFinishedUnrun(t *testing.T) {
	t.Parallel()
	q, d := newQueue(t), newDeaf()
	record, runs := recorder()
	q.serve(t, q.quick(), muxOf(d.handler(t), record, shipOnly(t, newLocker(t, q.store()), core.WithDedup(time.Hour))))
	id := q.enqueue(t, shipTask(), asynq.MaxRetry(3), asynq.Timeout(time.Second))
	<-d.started
	<-runs // in conflict with itself
	close(d.finish)
	<-d.ended
	q.await(t, id, asynq.TaskStateCompleted)
	if n := d.runs.Load(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

func TestCancelledTaskNeitherOverlapsNorRunsTwiceInsideTheDedupWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dedup time.Duration
		runs  int32
	}{"without dedup": {0, 2}, "with dedup": {time.Hour, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, d := newQueue(t), newDeaf()
			record, runs := recorder()
			q.serve(t, q.quick(), muxOf(d.handler(t), record, shipOnly(t, newLocker(t, q.store()), core.WithDedup(c.dedup))))
			id := q.enqueue(t, shipTask())
			<-d.started
			q.cancel(t, id, d.told)
			for range 2 {
				if r := <-runs; !errors.Is(r.err, taskmw.ErrConflict) {
					t.Errorf("after the cancellation: %v", r.err)
				}
			}
			close(d.finish)
			<-d.ended
			info := q.await(t, id, asynq.TaskStateCompleted)
			if n := d.runs.Load(); n != c.runs || info.Retried != 1 {
				t.Errorf("%d runs, retried %d times", n, info.Retried)
			}
		})
	}
}

// cancel cancels a task. asynq publishes that, to servers that have subscribed: some time
// after their start, so it is said again until the task was told. Other tests' servers hear it too.
// If it was said twice, the second time could cancel the task's redelivery.
func (q *queue) cancel(t *testing.T, id string, told <-chan struct{}) {
	t.Helper()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for range 20 {
		if err := q.rdb.Publish(t.Context(), "asynq:cancel", id).Err(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-told:
			return
		case <-again.C:
		}
	}
	t.Fatal("the task's server does not listen")
}
