// Asynq shows Holdfast's door to asynq at work, with nothing to set up:
//
//	go run ./examples/asynq
//
// First three nodes, each with a scheduler and a worker, all enqueue the same cron job, which
// runs once for each tick. Then four tasks of one key meet, under each action that
// taskmw.Rule.OnConflict knows. Last a request hands its lock over to the task that it enqueues.
//
// Redis is an embedded miniredis; -redis host:port takes a real server, which is left as it
// was. The exit status is 0 only if all went as the output says.
//
// The files: cron.go is the cron job, conflicts.go the actions, handover.go the request, service.go the Redis.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(run()) }

func run() int {
	slog.SetLogLoggerLevel(slog.LevelWarn) // that a task was skipped is no news here
	address := flag.String("redis", "", "a Redis server, as `host:port`, in place of the embedded miniredis")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "asynq: unexpected argument %q\n", flag.Arg(0))
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it takes too long"))
	defer cancel()
	if err := story(ctx, os.Stdout, *address); err != nil {
		fmt.Printf("\nFAILED: %v\n", err)
		return 1
	}
	return 0
}

func story(ctx context.Context, out io.Writer, address string) (err error) {
	s, err := newService(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()

	unguarded := os.Getenv(sabotageEnv) != ""
	if err := cron(ctx, out, s, !unguarded); err != nil {
		return err
	}
	if err := conflicts(ctx, out, s); err != nil {
		return err
	}
	if err := handOver(ctx, out, s); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nAll as promised.")
	return nil
}

// sabotageEnv leaves the lock out of the first part, for the test that has it fail.
const sabotageEnv = "HOLDFAST_EXAMPLE_UNGUARDED"
