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

func TestKeysMayHaveWhatAsynqKnowsOfTheTask(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	store := locktest.NewBackend()
	q.serve(t, q.quick(), muxOf(succeed, middleware(t, locktest.Locker(t, store),
		taskmw.WithType("order:*", "{asynq:queue}/{asynq:id}/{header:tenant|text}"))))
	task := asynq.NewTaskWithHeaders("order:ship", nil, map[string]string{"tenant": "acme"})
	q.await(t, q.enqueue(t, task, asynq.TaskID("ship:42")), asynq.TaskStateCompleted)
	if c := <-store.Granted; c.Name != q.name+"/ship%3A42/acme" || c.Label != "task:order:ship:ship%3A42" {
		t.Errorf("claimed %s with label %s", c.Name, c.Label)
	}
}

// On their last attempt, too: another one would only be postponed. They keep the name that they were handed.
func TestADrainingServerPutsTasksBack(t *testing.T) {
	t.Parallel()
	until := func(ctx context.Context, _ *asynq.Task) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	for why, c := range map[string]struct {
		drain bool
		rule  taskmw.Option
	}{
		"it drains": {true, shipRule(taskmw.Retry)}, "a key function takes its time": {false, taskmw.WithTypeFunc("order:ship", until)},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			locks := locktest.Locker(t, q.store())
			if c.drain {
				locktest.OK(t, locks.Drain(t.Context()))
			}
			begun := make(chan struct{}, 100)
			tell := func(next asynq.Handler) asynq.Handler {
				return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
					begun <- struct{}{}
					return next.ProcessTask(ctx, task)
				})
			}
			record, runs := recorder()
			cfg := q.quick()
			cfg.ShutdownTimeout = 100 * time.Millisecond
			srv := q.serve(t, cfg, muxOf(succeed, tell, record, middleware(t, locks, c.rule)))
			id, _ := q.handOver(t, locktest.Locker(t, q.store()), shipTask(), asynq.MaxRetry(0))
			<-begun
			srv.Shutdown()
			if <-runs; isFree(t, q.store()) {
				t.Error("the name is free")
			}
			q.serve(t, q.quick(), muxOf(succeed, ship(t, locktest.Locker(t, q.store()), taskmw.Retry)))
			if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried != 0 {
				t.Errorf("it counted as a failure: %+v", info)
			}
		})
	}
}

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
				info := q.await(t, id, asynq.TaskStateCompleted)
				if n := only.runs.Load(); (n == 1) != (dedup > 0) || n > 2 {
					t.Errorf("%d runs", n)
				}
				all, err := q.inspect.GetQueueInfo(q.name)
				if err != nil || why == "shutdown" && (info.Retried > 0 || all.FailedTotal > 0) {
					t.Errorf("conflicts are failures: retried %d times, %+v, %v", info.Retried, all, err)
				}
			})
		}
	}
}
