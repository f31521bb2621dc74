// Echo guards the routes of a little shop, with nothing to set up:
//
//	go run ./examples/echo
//
// It sends itself some requests, shows what comes back, and then serves until Ctrl-C. The locks
// are in the process's memory; -redis host:port has them in Redis, and then as many of these
// processes as you like share them. -v5 serves with Echo v5.
//
// The routes are in v4.go and v5.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/examples/internal/httptour"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("echo", flag.ContinueOnError)
	address := flags.String("redis", "", "a Redis server, as `host:port`, in place of the process's memory")
	listen := flags.String("listen", "127.0.0.1:8080", "where to serve, as `host:port`")
	once := flags.Bool("once", false, "end after the requests to itself")
	v5 := flags.Bool("v5", false, "serve with Echo v5")
	if err := flags.Parse(args); err != nil {
		return err
	}

	var backend driver.Driver = memlock.New()
	if *address != "" {
		rdb := redis.NewClient(&redis.Options{Addr: *address})
		defer rdb.Close()
		backend = redislock.New(rdb)
	}
	locks, err := core.New(backend)
	if err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = locks.Close(last) // after the server has stopped there is nothing left to release
	}()

	var shop http.Handler
	if *v5 {
		shop, err = shopV5(locks)
	} else {
		shop, err = shopV4(locks)
	}
	if err != nil {
		return err
	}
	return httptour.Run(ctx, out, shop, *listen, *once)
}
