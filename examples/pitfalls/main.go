// Pitfalls shows what goes wrong with the locks that articles teach, and the same scenes
// with Holdfast:
//
//	go run ./examples/pitfalls
//
// Each pitfall is a file of its own: a lock as people write it by hand, the scene that
// breaks it, and the scene again with Holdfast. The order of events is forced, so nothing
// depends on luck. The lock service is an embedded miniredis. The exit status is 0 only if
// every pitfall showed, and none with Holdfast.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// pitfall is one mistake. Both scenes say what was seen, and whether harm was done.
type pitfall struct {
	name string
	lock string // how the hand-written lock works
	byHand,
	holdfast func(context.Context, *lab) (seen string, harm bool, err error)
}

func pitfalls() []pitfall {
	return []pitfall{
		setnxThenExpire,
		timestampGetset,
		blindDel,
		getDel,
		shortTTL,
		selfDeadlock,
		retriedSetnx,
		lostMaster,
		lateWrite,
		cancelledUnlock,
	}
}

func main() {
	logging.Disable() // what goes wrong comes back as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := show(ctx, os.Stdout, pitfalls())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pitfalls:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// show plays all scenes. It is true if each lock by hand did harm, and Holdfast none.
func show(ctx context.Context, out io.Writer, all []pitfall) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	l, err := newLab()
	if err != nil {
		return false, err
	}
	defer l.close(context.WithoutCancel(ctx))

	good := true
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "pitfall\tby hand\twith Holdfast")
	for _, p := range all {
		fmt.Fprintf(out, "%s: %s\n", p.name, p.lock)
		seen, harm, err := p.byHand(ctx, l)
		if err != nil {
			return false, fmt.Errorf("%s, by hand: %w", p.name, err)
		}
		fmt.Fprintf(out, "  by hand:  %s\n", seen)
		seen, failed, err := p.holdfast(ctx, l)
		if err != nil {
			return false, fmt.Errorf("%s, with Holdfast: %w", p.name, err)
		}
		fmt.Fprintf(out, "  Holdfast: %s\n", seen)
		fmt.Fprintf(table, "%s\t%s\t%s\n", p.name, verdict(harm), verdict(failed))
		good = good && harm && !failed
	}
	fmt.Fprintln(out)
	return good, table.Flush()
}

func verdict(harm bool) string {
	if harm {
		return "broken"
	}
	return "safe"
}
