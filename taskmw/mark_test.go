package taskmw_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

// logBuffer is a buffer that several goroutines may write to.
type logBuffer struct {
	mu  sync.Mutex // protects buf
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func TestAnIsFailureThatIsSetAfterConfigureIsNoticed(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	release := hold(t, q.store(), "order:42")
	var log logBuffer
	cfg := q.quick()
	taskmw.Configure(&cfg, taskmw.WithConflictDelay(time.Second))
	cfg.IsFailure = func(err error) bool { return err != nil }
	q.serveAsIs(t, cfg, muxOf(func(context.Context, *asynq.Task) error { return nil },
		taskmw.Middleware(newLocker(t, q.store()), taskmw.WithType("order:ship", "order:{order_id}"), taskmw.WithLogger(log.logger()))))
	id := q.enqueue(t, shipTask(), asynq.MaxRetry(1000))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(log.String(), "another IsFailure after taskmw.Configure") && time.Now().Before(end); {
		<-tick.C
	}
	release() // the task waits for its name now, in its worker
	q.await(t, id, asynq.TaskStateCompleted)
	if s := log.String(); strings.Count(s, "after taskmw.Configure") != 1 {
		t.Errorf("logged %q", s)
	}
}

func TestAnIsFailureThatWasSetBeforeConfigureIsNoFault(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	release := hold(t, q.store(), "order:42")
	var log logBuffer
	cfg := q.quick()
	cfg.IsFailure = func(err error) bool { return err != nil }
	taskmw.Configure(&cfg, taskmw.WithConflictDelay(time.Second))
	record, runs := recorder()
	q.serveAsIs(t, cfg, muxOf(func(context.Context, *asynq.Task) error { return nil }, record,
		taskmw.Middleware(newLocker(t, q.store()), taskmw.WithType("order:ship", "order:{order_id}"), taskmw.WithLogger(log.logger()))))
	id := q.enqueue(t, shipTask())
	for range 3 {
		if r := <-runs; !errors.Is(r.err, taskmw.ErrConflict) {
			t.Fatal(r.err)
		}
	}
	release()
	if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried != 0 || log.String() != "" {
		t.Errorf("%d retries counted, logged %q", info.Retried, log.String())
	}
}

func TestTasksThatAreFinishedWithoutARunAreLogged(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	var log logBuffer
	mux := muxOf(func(context.Context, *asynq.Task) error { return nil }, taskmw.Middleware(newLocker(t, store),
		taskmw.WithType("order:ship", "order:{order_id}", core.WithDedup(time.Hour)),
		taskmw.WithLogger(log.logger())))
	for range 2 {
		if err := mux.ProcessTask(taskContext(t), shipTask()); err != nil {
			t.Fatal(err)
		}
	}
	if s := log.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "already done") || !strings.Contains(s, "type=order:ship") || strings.Contains(s, "order:42") {
		t.Errorf("after a duplicate: %q", s)
	}
}

func TestATaskThatSkipFinishesIsLogged(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	holdAs(t, q.store(), "report", "task:order:report:other")
	var log logBuffer
	q.serve(t, q.quick(), muxOf(mustNotRun(t), taskmw.Middleware(newLocker(t, q.store()),
		taskmw.WithType("order:report", "report", taskmw.OnConflict(taskmw.Skip)), taskmw.WithLogger(log.logger()))))
	id := q.enqueue(t, asynq.NewTask("order:report", nil))
	q.await(t, id, asynq.TaskStateCompleted)
	if s := log.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "another task of its type runs") || !strings.Contains(s, "id="+id) {
		t.Errorf("logged %q", s)
	}
}

func TestADrainingServerPutsTasksBack(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"with another attempt": 1, "on its last attempt": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			locks := newLocker(t, q.store())
			if err := locks.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			begun := make(chan struct{}, 100)
			tell := func(next asynq.Handler) asynq.Handler {
				return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
					begun <- struct{}{}
					return next.ProcessTask(ctx, task)
				})
			}
			cfg := q.quick()
			cfg.ShutdownTimeout = 100 * time.Millisecond
			handler := func(context.Context, *asynq.Task) error { return nil }
			srv := q.serve(t, cfg, muxOf(handler, tell, shipOnly(t, locks)))
			id := q.enqueue(t, shipTask(), asynq.MaxRetry(limit))
			<-begun
			srv.Shutdown()
			q.serve(t, q.quick(), muxOf(handler, shipOnly(t, newLocker(t, q.store()))))
			if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried != 0 {
				t.Errorf("it counted as a failure: %+v", info)
			}
		})
	}
}
