package taskmw_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

// asynq gives a task up whose time is over, and counts that as a failure. So nobody waits for longer than the task has.
func TestAConflictIsNoFailureHoweverPatientTheRule(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		wait time.Duration
		time func() asynq.Option
	}{
		"a timeout":          {time.Minute, func() asynq.Option { return asynq.Timeout(time.Second) }},
		"a timeout, forever": {core.WaitForever, func() asynq.Option { return asynq.Timeout(time.Second) }},
		"a deadline":         {time.Minute, func() asynq.Option { return asynq.Deadline(time.Now().Add(4 * time.Second)) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			record, runs := recorder()
			store := locktest.NewBackend()
			release := hold(t, store, "order:42")
			q.serve(t, q.quick(), muxOf(succeed, record, ship(t, locktest.Locker(t, store), taskmw.Retry, core.WithWait(c.wait))))
			id := q.enqueue(t, shipTask(), asynq.MaxRetry(1), c.time())
			if r := <-runs; !errors.Is(r.err, taskmw.ErrConflict) || r.ended != nil {
				t.Errorf("%v, the task's context: %v", r.err, r.ended)
			}
			if what == "a deadline" {
				return // after which it fails
			}
			release()
			if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried != 0 || q.failures(t) != 0 {
				t.Errorf("%d failures: %+v", q.failures(t), info)
			}
		})
	}
}
