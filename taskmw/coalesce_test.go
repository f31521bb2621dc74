package taskmw_test

import (
	"context"
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
	began, finish := make(chan struct{}), make(chan struct{})
	record, ended := recorder()
	for range 3 {
		q.serve(t, q.quick(), muxOf(func(context.Context, *asynq.Task) error {
			defer r.enter(t)()
			if r.runs.Load() == 1 {
				close(began)
				<-finish
			}
			return nil
		}, record, ship(t, locktest.Locker(t, q.store()), taskmw.Coalesce)))
	}
	ids := []string{q.enqueue(t, shipTask())}
	<-began
	for range duplicates {
		ids = append(ids, q.enqueue(t, shipTask(), asynq.MaxRetry(0)))
	}
	for range duplicates - 1 { // all but the one that waits
		if err := (<-ended).err; err != nil {
			t.Errorf("conflict: %v", err)
		}
	}
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
