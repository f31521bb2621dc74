package taskmw_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

// turns is a handler whose first run ends when finish is closed.
type turns struct {
	exclusive
	began, finish chan struct{}
	order         chan string // the IDs of the tasks that ran
}

func newTurns() *turns {
	return &turns{began: make(chan struct{}), finish: make(chan struct{}), order: make(chan string, 100)}
}

func (r *turns) handler(t *testing.T) asynq.HandlerFunc {
	t.Helper()
	return func(ctx context.Context, _ *asynq.Task) error {
		defer r.enter(t)()
		id, _ := asynq.GetTaskID(ctx)
		r.order <- id
		if r.runs.Load() == 1 {
			close(r.began)
			<-r.finish
		}
		return nil
	}
}

// coalesce starts a server in a process of its own, as far as locks are concerned.
func (q *queue) coalesce(t *testing.T, h asynq.Handler, mws ...asynq.MiddlewareFunc) *asynq.Server {
	t.Helper()
	return q.serve(t, q.quick(), muxOf(h.ProcessTask, append(mws,
		middleware(t, locktest.Locker(t, q.store()), rule(taskmw.Coalesce, 0)))...))
}

func TestCoalesceEndsDuplicatesOnManyServersInExactlyOneRunMore(t *testing.T) {
	t.Parallel()
	const duplicates = 30
	q, r := newQueue(t), newTurns()
	var ended atomic.Int32
	unrun := make(chan struct{})
	count := func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			err := next.ProcessTask(ctx, task)
			if err != nil {
				t.Errorf("conflict: %v", err)
			}
			if ended.Add(1) == duplicates-1 {
				close(unrun)
			}
			return err
		})
	}
	for range 3 {
		q.coalesce(t, r.handler(t), count)
	}
	ids := []string{q.enqueue(t, shipTask())}
	<-r.began
	for range duplicates {
		ids = append(ids, q.enqueue(t, shipTask(), asynq.MaxRetry(0)))
	}
	<-unrun // all but the one that waits
	if n := r.runs.Load(); n != 1 {
		t.Errorf("%d runs while the first one runs", n)
	}
	close(r.finish)
	for _, id := range ids {
		q.await(t, id, asynq.TaskStateCompleted)
	}
	if n := r.runs.Load(); n != 2 {
		t.Errorf("%d runs", n)
	}
}
