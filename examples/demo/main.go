// Demo puts Holdfast under real traffic, with nothing to set up:
//
//	go run ./examples/demo
//	go run ./examples/demo -ui   the same traffic, slower, on a page that shows the locks, until Ctrl-C
//
// An Echo server, a gRPC server and an asynq worker, each a process of its own, change the
// same few orders of an order book, which is a process too. Hundreds of calls, RPCs and
// tasks are under way at once, first without Holdfast, then with it. In the end a process
// that holds a lock is frozen for longer than its lease.
//
// The lock service is an embedded miniredis; -redis host:port takes a real server, which
// is left as it was. The exit status is 0 only if updates were lost without Holdfast, none
// with it, and the frozen process could do no harm.
//
// The files, in the order of the story: store.go is the order book, shop.go what happens to
// an order, servers.go the three servers with their locks, traffic.go the clients, round.go a
// whole round, freeze.go and holder.go the frozen process, ui.go the page. How the demo starts itself in all
// these roles is in process.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run()) }

func run() int {
	slog.SetLogLoggerLevel(slog.LevelWarn) // that a task was skipped is no news here
	if r, ok := roleFromEnv(); ok {        // this is a child of the demo
		return r.run()
	}
	address := flag.String("redis", "", "a Redis server, as `host:port`, in place of the embedded miniredis")
	ui := flag.Bool("ui", false, "serve a page that shows the locks while traffic runs, until it is interrupted")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: unexpected argument %q\n", flag.Arg(0))
		return 2
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once

	out := newScreen(os.Stdout)
	show := story
	if *ui {
		show = watchable
	}
	switch err := show(ctx, out, *address); {
	case ctx.Err() != nil && *ui:
		return 0 // it has no other end
	case ctx.Err() != nil:
		out.printf("\nInterrupted.\n")
		return 130
	case err != nil:
		out.printf("\n%s %v\n", out.bad("FAILED:"), err)
		return 1
	}
	return 0
}

// story is the demo from its beginning to its end.
func story(ctx context.Context, out *screen, address string) error {
	began := time.Now()
	service, err := newService(ctx, address)
	if err != nil {
		return err
	}
	defer func() {
		if err := service.close(context.WithoutCancel(ctx)); err != nil {
			out.printf("\n%v\n", err)
		}
	}()
	sabotage := os.Getenv(sabotageEnv) // "" unless a test wants the demo to fail
	out.intro(service)

	out.act("1  Without Holdfast")
	without, err := round{name: bare, guarded: strings.Contains(sabotage, "contention")}.run(ctx, out, service)
	if err != nil {
		return err
	}
	out.act("2  With Holdfast: one line in each server, and all of them lock the same order")
	out.locks()
	with, err := round{name: held, guarded: !strings.Contains(sabotage, "guard")}.run(ctx, out, service)
	if err != nil {
		return err
	}
	out.act("3  A holder freezes for longer than its lease")
	frozen, err := freeze(ctx, out, service, strings.Contains(sabotage, "fence"))
	if err != nil {
		return err
	}

	out.table(without, with)
	if err := verdict(without, with, frozen); err != nil {
		return err
	}
	out.printf("\n%s It took %s.\n", out.good("All as promised."), seconds(time.Since(began)))
	return nil
}

// sabotageEnv names what the demo shall get wrong, for its tests: with "contention" the
// first round is guarded too, with "guard" the second is not, and with "fence" the store
// takes late writes.
const sabotageEnv = "HOLDFAST_DEMO_SABOTAGE"

// verdict says all that is not as promised, nil if nothing is.
func verdict(without, with *result, frozen []error) error {
	var wrong []error
	if without.lost() == 0 {
		wrong = append(wrong, errors.New("without Holdfast nothing was lost, so this run proves nothing"))
	}
	if n := with.lost(); n > 0 {
		wrong = append(wrong, fmt.Errorf("with Holdfast %d updates were lost", n))
	}
	if n := with.doubles(); n > 0 {
		wrong = append(wrong, fmt.Errorf("with Holdfast %d parcels were sent twice", n))
	}
	if n := with.unshipped(); n > 0 {
		wrong = append(wrong, fmt.Errorf("with Holdfast %d orders were not shipped", n))
	}
	return errors.Join(append(wrong, frozen...)...)
}
