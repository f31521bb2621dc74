// Service is a whole service with Holdfast: Echo, gRPC, asynq workers and a cron job on one Locker, and an
// end in good order when it gets SIGTERM.
//
//	redis-server &
//	go run ./examples/service
//	curl -i -X POST localhost:8080/orders/42/pay
//
// Stop it with Ctrl-C while a request runs, and send another one: the first is finished, the second gets
// 503 with Retry-After, and the exit status is 0.
//
// The files: servers.go has the servers and their locks, stop.go the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// config is what the flags say.
type config struct {
	redis, web, rpc string        // addresses
	queue           string        // of asynq
	work            time.Duration // what each piece of work takes
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	var c config
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.redis, "redis", "localhost:6379", "the Redis server, as `host:port`")
	flags.StringVar(&c.web, "web", "localhost:8080", "where to serve HTTP, as `host:port`")
	flags.StringVar(&c.rpc, "rpc", "localhost:9090", "where to serve gRPC, as `host:port`")
	flags.StringVar(&c.queue, "queue", "shop", "the asynq queue")
	flags.DurationVar(&c.work, "work", 3*time.Second, "how long each piece of work takes")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := serve(ctx, c, stdout); err != nil {
		fmt.Fprintln(stderr, "service:", err)
		return 1
	}
	return 0
}

// serve runs the service until ctx ends, and then stops it.
func serve(ctx context.Context, c config, out io.Writer) error {
	rdb := redis.NewClient(&redis.Options{Addr: c.redis, DialTimeout: 2 * time.Second})
	s, err := newService(ctx, c, rdb)
	if err != nil {
		return errors.Join(err, rdb.Close())
	}
	failed, err := s.start(ctx)
	if err != nil {
		return errors.Join(err, s.stop())
	}
	fmt.Fprintf(out, "ready: web %s, rpc %s\n", s.webAt, s.rpcAt)
	select {
	case <-ctx.Done():
		fmt.Fprintln(out, "stopping")
	case err = <-failed: // a server that has ended by itself
	}
	return errors.Join(err, s.stop())
}
