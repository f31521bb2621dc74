// Fencing shows the late write of a frozen process, with nothing to set up:
//
//	cd examples/fencing && go run .
//
// A process locks an order and works. It gets SIGSTOP, and its lease runs out. Another one
// gets the lock and writes. Then the first one gets SIGCONT, does not look at its context,
// and writes what it had in mind. Without a fence its write gets in, over the newer one; with
// package fence SQLite refuses it. The exit status is 0 only if both came out so.
//
// order.go is the order in its database: the few lines that a program needs. holder.go is
// the process that is frozen.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// patience is how long the whole may take.
const patience = time.Minute

func main() {
	run := story
	if len(os.Args) == 4 && os.Args[1] == "holder" { // a child of this program
		run = func(ctx context.Context) error { return hold(ctx, os.Args[2], os.Args[3]) }
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	err := run(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		fmt.Println("Skipped: this system has no SIGSTOP.")
		return
	}
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
}

// story plays it without a fence and with it.
func story(ctx context.Context) error {
	began := time.Now()
	server, err := miniredis.Run() // the lock service
	if err != nil {
		return err
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	locks, err := core.New(redislock.New(rdb))
	if err != nil {
		return err
	}
	defer locks.Close(ctx)
	dir, err := os.MkdirTemp("", "holdfast-fencing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	go func() { // miniredis does not see time pass by itself
		for range time.Tick(tickEvery) {
			server.FastForward(tickEvery)
		}
	}()

	fmt.Println("Without a fence")
	if err := (play{locks, server.Addr(), filepath.Join(dir, "without.db"), false}).run(ctx); err != nil {
		return err
	}
	fmt.Println("\nWith a fence")
	if err := (play{locks, server.Addr(), filepath.Join(dir, "with.db"), true}).run(ctx); err != nil {
		return err
	}
	fmt.Printf("\nAs promised, in %.1f s.\n", time.Since(began).Seconds())
	return nil
}

const tickEvery = 20 * time.Millisecond

// play is one run of the story. A is the child, B is this process.
type play struct {
	locks  *core.Locker
	redis  string
	file   string
	fenced bool
}

func (p play) run(ctx context.Context) error {
	db, err := openOrders(ctx, p.file)
	if err != nil {
		return err
	}
	defer db.Close()
	a, err := startHolder(ctx, p)
	if err != nil {
		return err
	}
	defer a.end()

	if err := a.expect("locked"); err != nil {
		return err
	}
	if err := a.stop(); err != nil {
		return err
	}
	fmt.Printf("  A (process %d) has the lock on %s, reads it, and is frozen (SIGSTOP)\n", a.pid(), orderName)
	if err := p.overtake(ctx, db); err != nil {
		return err
	}
	if err := a.goOn(); err != nil {
		return err
	}
	late, err := a.line()
	if err != nil {
		return err
	}
	status, err := readOrder(ctx, db)
	if err != nil {
		return err
	}
	fmt.Printf("  A goes on (SIGCONT) and writes %q:\n    %s\n", fromA, late)
	fmt.Printf("  The order is %q\n", status)
	return p.verdict(late, status)
}

// overtake waits until A's lease is over, and writes.
func (p play) overtake(ctx context.Context, db *sql.DB) error {
	return p.locks.Do(ctx, orderName, func(ctx context.Context) error {
		f, _ := core.FenceFor(ctx, orderName)
		if err := writeOrder(ctx, db, f, fromB, p.fenced); err != nil {
			return err
		}
		fmt.Printf("  A's lease has run out; B gets the lock, and writes %q\n", fromB)
		return nil
	})
}

// verdict says what is not as promised.
func (p play) verdict(late, status string) error {
	refused := strings.HasPrefix(late, "refused")
	switch {
	case p.fenced && (!refused || status != fromB):
		return errors.New("the late write got in")
	case !p.fenced && (refused || status != fromA):
		return errors.New("the late write did not get in, so this run proves nothing")
	}
	return nil
}
