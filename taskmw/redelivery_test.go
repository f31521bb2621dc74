package taskmw_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

// asynq gives up a run that goes on, and delivers its task again: after a shutdown that does not wait for it, after its
// timeout.
func TestATaskThatIsDeliveredAgainNeitherOverlapsNorGetsLost(t *testing.T) {
	t.Parallel()
	for why, giveUp := range map[string]func(first *asynq.Server){
		"shutdown": func(first *asynq.Server) { first.Shutdown() },
		"timeout":  func(*asynq.Server) {},
	} {
		for _, dedup := range []time.Duration{0, time.Hour} {
			t.Run(why+" "+dedup.String(), func(t *testing.T) {
				t.Parallel()
				q := newQueue(t)
				var only exclusive
				started, finish, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
				deaf := func(context.Context, *asynq.Task) error { // the first run does not listen to its context
					defer only.enter(t)()
					if only.runs.Load() == 1 {
						defer close(ended)
						close(started)
						<-finish
					}
					return nil
				}
				record, runs := recorder()
				serve := func() *asynq.Server {
					cfg := q.quick()
					cfg.ShutdownTimeout = 10 * time.Millisecond
					return q.serve(t, cfg, muxOf(deaf, record, ship(t, locktest.Locker(t, q.store()), taskmw.Retry, core.WithDedup(dedup))))
				}
				first := serve()
				opts := []asynq.Option{asynq.MaxRetry(3)}
				if why == "timeout" {
					opts = append(opts, asynq.Timeout(time.Second))
				}
				id := q.enqueue(t, shipTask(), opts...)
				<-started
				giveUp(first)
				serve()
				for range 2 { // the first run tells nothing: it goes on
					r := <-runs
					if again, _ := asynq.GetTaskID(r.ctx); again != id || !errors.Is(r.err, taskmw.ErrConflict) {
						t.Errorf("delivered again while it runs: task %s, %v", again, r.err)
					}
				}
				close(finish)
				<-ended
				q.await(t, id, asynq.TaskStateCompleted)
				if n := only.runs.Load(); (n == 1) != (dedup > 0) || n > 2 {
					t.Errorf("%d runs", n)
				}
			})
		}
	}
}
