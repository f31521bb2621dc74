package migration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/taskmw"
)

// worker serves one kind of task, two at a time. It ends with the test.
func worker(t *testing.T, opt asynq.RedisClientOpt, handler asynq.Handler) {
	t.Helper()
	cfg := asynq.Config{
		Concurrency:       2,
		LogLevel:          asynq.FatalLevel,
		TaskCheckInterval: 10 * time.Millisecond,
		ShutdownTimeout:   10 * time.Second,
	}
	taskmw.Configure(&cfg)
	srv := asynq.NewServer(opt, cfg)
	ok(t, srv.Start(handler))
	t.Cleanup(srv.Shutdown)
}

func client(t *testing.T, opt asynq.RedisClientOpt) *asynq.Client {
	t.Helper()
	c := asynq.NewClient(opt)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func shipping() *asynq.Task { return asynq.NewTask("order:ship", []byte(`{"order_id":42}`)) }

// Unique keeps a second task out of the queue for its TTL, however long the first one takes.
func TestUniqueTasksRunAtOnceWhenTheTTLIsOver(t *testing.T) {
	t.Parallel()
	opt := asynq.RedisClientOpt{Addr: servers.Redis(t).Addr()}
	running, finish := make(chan struct{}, 2), make(chan struct{})
	worker(t, opt, asynq.HandlerFunc(func(context.Context, *asynq.Task) error { running <- struct{}{}; <-finish; return nil }))
	queue := client(t, opt)
	enqueueWhenFree(t, queue)
	<-running
	enqueueWhenFree(t, queue) // refused for a second; the first one still runs
	<-running
	close(finish)
}

func TestUniqueBesideTheMiddlewareLetsOneRunAtATime(t *testing.T) {
	t.Parallel()
	addr := servers.Redis(t).Addr()
	opt := asynq.RedisClientOpt{Addr: addr}
	held := make(chan struct{}, 1)
	locks := lockerOf(t, dial(t, addr), "holdfast:", core.WithObserver(func(e core.Event) {
		if e.Kind == core.EventHeld {
			select {
			case held <- struct{}{}:
			default:
			}
		}
	}))
	running, finish := make(chan struct{}, 2), make(chan struct{})
	mux := asynq.NewServeMux()
	mux.Use(taskmw.Middleware(locks, taskmw.WithType("order:ship", "order:{order_id}")))
	mux.HandleFunc("order:ship", func(context.Context, *asynq.Task) error { running <- struct{}{}; <-finish; return nil })
	worker(t, opt, mux)
	queue := client(t, opt)
	enqueueWhenFree(t, queue)
	<-running
	enqueueWhenFree(t, queue)
	<-held
	select {
	case <-running:
		t.Error("two at once")
	default:
	}
	close(finish)
}

// enqueueWhenFree enqueues the task as soon as Unique lets it.
func enqueueWhenFree(t *testing.T, queue *asynq.Client) {
	t.Helper()
	for {
		_, err := queue.EnqueueContext(t.Context(), shipping(), asynq.Unique(time.Second), asynq.MaxRetry(5))
		if err == nil {
			return
		}
		if !errors.Is(err, asynq.ErrDuplicateTask) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
