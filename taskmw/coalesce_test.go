package taskmw_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestCoalesceEndsDuplicatesOnManyServersInExactlyOneRunMore(t *testing.T) {
	t.Parallel()
	const duplicates = 30
	q := newQueue(t)
	var r exclusive
	var ended atomic.Int32
	began, finish, unrun := make(chan struct{}), make(chan struct{}), make(chan struct{})
	handler := func(context.Context, *asynq.Task) error {
		defer r.enter(t)()
		if r.runs.Load() == 1 {
			close(began)
			<-finish
		}
		return nil
	}
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
		q.serve(t, q.quick(), muxOf(handler, count, middleware(t, locktest.Locker(t, q.store()), rule(taskmw.Coalesce, 0))))
	}
	ids := []string{q.enqueue(t, shipTask())}
	<-began
	for range duplicates {
		ids = append(ids, q.enqueue(t, shipTask(), asynq.MaxRetry(0)))
	}
	<-unrun // all but the one that waits
	if n := r.runs.Load(); n != 1 {
		t.Errorf("%d runs while the first one runs", n)
	}
	close(finish)
	for _, id := range ids {
		q.await(t, id, asynq.TaskStateCompleted)
	}
	if n := r.runs.Load(); n != 2 {
		t.Errorf("%d runs", n)
	}
}
