package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// serve is the process of one server. It has a Locker of its own: all that the servers
// share is the lock service.
func serve(ctx context.Context, r role) error {
	book, err := openBook(ctx, r.Store)
	if err != nil {
		return err
	}
	defer book.close()
	rdb := dial(r.Locks)
	defer rdb.Close()
	var locks *core.Locker
	if r.Guarded {
		if locks, err = core.New(redislock.New(rdb, redislock.WithPrefix(r.Prefix))); err != nil {
			return err
		}
		defer closeLocks(ctx, locks)
	}
	switch s := (shop{book, r.Slow}); r.Name {
	case "echo":
		return serveEcho(ctx, s, locks)
	case "grpc":
		return serveGRPC(ctx, s, locks)
	default:
		return serveTasks(ctx, s, locks, r)
	}
}

// closeLocks gives back what is held. What it cannot give back in time ends with its TTL.
func closeLocks(ctx context.Context, locks *core.Locker) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace/2)
	defer cancel()
	_ = locks.Close(ctx)
}

func serveEcho(ctx context.Context, s shop, locks *core.Locker) error {
	lis, err := listen(ctx)
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler:           echoDoor(s, locks),
		ReadHeaderTimeout: patience,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	tell(lis.Addr())
	if err := srv.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func serveGRPC(ctx context.Context, s shop, locks *core.Locker) error {
	lis, err := listen(ctx)
	if err != nil {
		return err
	}
	srv := grpcDoor(s, locks)
	context.AfterFunc(ctx, srv.Stop)
	tell(lis.Addr())
	return srv.Serve(lis)
}

func serveTasks(ctx context.Context, s shop, locks *core.Locker, r role) error {
	rdb := dial(r.Tasks)
	defer rdb.Close()
	cfg := asynq.Config{
		Queues:            map[string]int{r.Queue: 1},
		Concurrency:       clients,
		TaskCheckInterval: 20 * time.Millisecond,
		ShutdownTimeout:   grace / 4,
		LogLevel:          asynq.FatalLevel,
	}
	tasks := taskDoor(s, locks, &cfg)
	srv := asynq.NewServerFromRedisClient(rdb, cfg)
	if err := srv.Start(tasks); err != nil {
		return err
	}
	tell("ready")
	<-ctx.Done()
	srv.Shutdown()
	return nil
}
