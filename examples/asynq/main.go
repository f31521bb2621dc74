// Asynq shows Holdfast's middleware for asynq at work, with nothing to set up:
//
//	go run ./examples/asynq
//
// A task runs, and three more of its key come, under each action that taskmw.Rule.OnConflict knows. Redis is an embedded
// miniredis. The exit status is 0 only if all went as the output says.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/taskmw"
)

func main() {
	slog.SetLogLoggerLevel(slog.LevelWarn) // that a task was skipped is no news here
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, taskmw.Middleware)
	stop()
	if err != nil {
		fmt.Println("\nFAILED:", err)
		os.Exit(1)
	}
	fmt.Println("\nAll as promised.")
}

// run plays all scenes at once, on one worker.
func run(ctx context.Context, out io.Writer, middleware func(*core.Locker, ...taskmw.Option) asynq.MiddlewareFunc) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it takes too long"))
	defer cancel()
	server, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer server.Close()
	server.ClockTTL(true)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	locks, err := core.New(redislock.New(rdb))
	if err != nil {
		return err
	}
	defer locks.Close(ctx)

	all := scenes()
	rules := []taskmw.Option{taskmw.WithConflictDelay(0)} // by default a task comes back after 5 s
	byType := make(map[string]*scene)
	for _, c := range all {
		byType[c.taskType()] = c
		rules = append(rules, taskmw.WithType(c.taskType(), "{asynq:type}", core.WithWait(c.wait)).OnConflict(c.action))
	}
	cfg := asynq.Config{
		Concurrency:              len(all) * (1 + duplicates),
		TaskCheckInterval:        50 * time.Millisecond, // for those who watch
		DelayedTaskCheckInterval: 100 * time.Millisecond,
		LogLevel:                 asynq.FatalLevel,
	}
	taskmw.Configure(&cfg) // last, on a complete config: a lock that is held is not a failure
	mux := asynq.NewServeMux()
	mux.Use(watch(byType), middleware(locks, rules...))
	mux.HandleFunc("report:", func(ctx context.Context, t *asynq.Task) error { return byType[t.Type()].run(ctx) })
	srv := asynq.NewServerFromRedisClient(rdb, cfg)
	if err := srv.Start(mux); err != nil {
		return err
	}
	defer srv.Shutdown()
	client := asynq.NewClientFromRedisClient(rdb)
	for _, c := range all {
		if err := c.play(ctx, client); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return report(ctx, out, all)
}
