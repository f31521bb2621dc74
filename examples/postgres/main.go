// Postgres shows a lock and the data that it protects in one PostgreSQL database, and a commit that comes too late:
//
//	go run ./examples/postgres postgres://localhost/mydb
//
// A locks an order, begins to change it, and stands still until its lease has run out. B gets the lock, writes and commits.
// Then A goes on, does not look at its context, and commits. sqllock.HeldInPgx, the last statement before the commit, refuses
// that. The exit status is 0 only if the order is as B left it.
//
// The tables are made in the database, and dropped. order.go has the few lines that a program needs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Println("Usage: go run ./examples/postgres postgres://user@host/database")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := story(ctx, os.Stdout, os.Args[1], false)
	stop()
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
}

// story lets A commit without looking if it is careless.
func story(ctx context.Context, out io.Writer, url string, careless bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	a, err := openShop(ctx, url)
	if err != nil {
		return err
	}
	defer a.close(ctx)
	b, err := openShop(ctx, url) // in production in another process
	if err != nil {
		return err
	}
	defer b.close(ctx)
	if err := a.create(ctx); err != nil {
		return err
	}
	defer a.drop(context.WithoutCancel(ctx))

	locked, overtaken, refused := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	a.careless = careless
	a.before = func(ctx context.Context) context.Context {
		close(locked)
		<-overtaken
		return context.WithoutCancel(ctx) // what no program should do: it does not look at its context
	}
	go func() { refused <- a.ship(ctx, "cancelled", core.WithTTL(time.Second), core.WithoutRenewal()) }()
	select {
	case <-locked:
	case err := <-refused:
		return err
	}
	fmt.Fprintf(out, "A has the lock on %s, and stands still\n", orderName)
	err = b.ship(ctx, "shipped")
	close(overtaken)
	late := <-refused
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "A's lease has run out; B gets the lock, writes \"shipped\" and commits")
	fmt.Fprintf(out, "A goes on, writes \"cancelled\", and wants to commit:\n  %s\n", strings.ReplaceAll(fmt.Sprint(late), "\n", "\n  "))
	status, err := b.status(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The order is %q\n", status)
	if status != "shipped" {
		return errors.New("the late write got in")
	}
	return nil
}
