package taskmw_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/taskmw"
)

// Schedulers on several nodes enqueue the same job: after the first task has run, and while
// its minimum hold lasts, those of the others are finished unrun. One that failed runs again.
func TestWithMinHoldAJobOfManySchedulersRunsOncePerTick(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	var runs atomic.Int32
	srv := q.serve(t, q.quick(), muxOf(
		func(context.Context, *asynq.Task) error { runs.Add(1); return nil },
		taskmw.Middleware(newLocker(t, q.store()), taskmw.WithType("order:report", "report:"+q.name,
			taskmw.OnConflict(taskmw.Skip), core.WithMinHold(time.Minute)))))
	defer srv.Shutdown()
	for range 3 {
		q.await(t, q.enqueue(t, asynq.NewTask("order:report", nil)), asynq.TaskStateCompleted)
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("ran %d times", n)
	}
	if _, err := newLocker(t, q.store()).TryAcquire(t.Context(), "report:"+q.name); !errors.Is(err, core.ErrHeld) {
		t.Errorf("the name is free: %v", err)
	}
}
