package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/taskmw"
)

// handOver takes a name in a request, hands it over to a task, and looks from time to time
// whether another request could have it.
func handOver(ctx context.Context, out io.Writer, s *service) error {
	fmt.Fprintf(out, "\n3  A request hands its lock over to a task\n\n")
	web, err := s.locks()
	if err != nil {
		return err
	}
	defer func() { _ = web.Close(context.WithoutCancel(ctx)) }() // nothing is held any more
	worker, err := s.locks()
	if err != nil {
		return err
	}
	defer func() { _ = worker.Close(context.WithoutCancel(ctx)) }()
	queue := s.queue("handover")

	err = web.Do(ctx, "order:42", func(ctx context.Context) error { // in production httpmw.Lock, or another door
		client := asynq.NewClientFromRedisClient(s.rdb)
		task := asynq.NewTask("order:ship", []byte(`{"order_id":42}`))
		_, err := taskmw.Enqueue(ctx, client, task, 10*time.Minute, asynq.Queue(queue))
		return err
	})
	if err != nil {
		return err
	}
	if err := look(ctx, out, web, "the task waits in its queue", true); err != nil {
		return err
	}

	begun, finish, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	mux := asynq.NewServeMux()
	mux.Use(tell(over), taskmw.Middleware(worker, taskmw.WithType("order:ship", "order:{order_id}")))
	mux.HandleFunc("order:ship", func(ctx context.Context, _ *asynq.Task) error {
		close(begun)
		return wait(ctx, finish)
	})
	var cfg asynq.Config
	taskmw.Configure(&cfg)
	srv, err := s.serve(cfg, queue, mux)
	if err != nil {
		return err
	}
	defer srv.Shutdown()
	if err := wait(ctx, begun); err != nil {
		return err
	}
	if err := look(ctx, out, web, "the task runs", true); err != nil {
		return err
	}
	close(finish)
	if err := wait(ctx, over); err != nil {
		return err
	}
	return look(ctx, out, web, "the task is finished", false)
}

// tell closes over when the door is through with its task.
func tell(over chan struct{}) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			defer close(over)
			return next.ProcessTask(ctx, t)
		})
	}
}

// look is another request for the same order.
func look(ctx context.Context, out io.Writer, locks *core.Locker, when string, refused bool) error {
	err := locks.Do(ctx, "order:42", func(context.Context) error { return nil }, core.WithWait(0))
	held := errors.Is(err, core.ErrHeld)
	if err != nil && !held {
		return err
	}
	answer := map[bool]string{true: "refused", false: "granted"}
	fmt.Fprintf(out, "   %-29s another request is %s\n", when+":", answer[held])
	if held != refused {
		return fmt.Errorf("%s: another request was %s, not %s", when, answer[held], answer[refused])
	}
	return nil
}
