// Postgres shows a lock and the data that it protects in one PostgreSQL database, and a process that is
// frozen in the middle of its transaction:
//
//	cd examples/postgres && go run . postgres://localhost/mydb
//
// A process locks an order, and begins a transaction that changes it. It gets SIGSTOP, and its lease runs
// out. Another one gets the lock and writes. Then the first one gets SIGCONT, does not look at its context,
// and commits. sqllock.HeldInTx, the last statement before the commit, refuses that. The exit status is 0
// only if the order is as the second one left it.
//
// The tables are made in the database, and dropped. order.go has the few lines that a program needs.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// patience is how long the whole may take.
const patience = time.Minute

func main() {
	run := story
	if len(os.Args) == 3 && os.Args[2] == "frozen" { // a child of this program
		run = freeze
	}
	if len(os.Args) < 2 {
		fmt.Println("Usage: go run . postgres://user@host/database")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1])
	if errors.Is(err, errors.ErrUnsupported) {
		fmt.Println("Skipped: this system has no SIGSTOP.")
		return
	}
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
}

// story is B, which starts A.
func story(ctx context.Context, url string) error {
	shop, err := openShop(ctx, url)
	if err != nil {
		return err
	}
	defer shop.close(ctx)
	if err := shop.create(ctx); err != nil {
		return err
	}
	defer shop.drop(context.WithoutCancel(ctx))
	a, lines, err := startChild(ctx, url)
	if err != nil {
		return err
	}
	defer func() {
		_ = a.Process.Kill() // fails only if it has ended
		_ = a.Wait()         // it was killed
	}()
	if said := next(lines); said != "locked" {
		return fmt.Errorf("the child says %q", said)
	}
	if err := stopProcess(a.Process); err != nil {
		return err
	}
	fmt.Printf("A (process %d) has the lock on %s, and is frozen (SIGSTOP)\n", a.Process.Pid, orderName)
	if err := shop.ship(ctx, "shipped"); err != nil {
		return err
	}
	fmt.Println("A's lease has run out; B gets the lock, writes \"shipped\" and commits")
	if err := continueProcess(a.Process); err != nil {
		return err
	}
	fmt.Printf("A goes on (SIGCONT), writes \"cancelled\", and wants to commit:\n  %s\n", next(lines))
	status, err := shop.status(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("The order is %q\n", status)
	if status != "shipped" {
		return errors.New("the late write got in")
	}
	return nil
}

func startChild(ctx context.Context, url string) (*exec.Cmd, *bufio.Scanner, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, exe, url, "frozen") //nolint:gosec // G204: the program itself
	cmd.Stderr = os.Stderr
	dieWithParent(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return cmd, bufio.NewScanner(out), nil
}

// next is what the child says next.
func next(lines *bufio.Scanner) string {
	if !lines.Scan() {
		return "nothing: it has ended"
	}
	return lines.Text()
}

// freeze is A. It is stopped after it has said "locked", and goes on when its lease has ended.
func freeze(ctx context.Context, url string) error {
	shop, err := openShop(ctx, url)
	if err != nil {
		return err
	}
	defer shop.close(ctx)
	shop.before = func(ctx context.Context) context.Context {
		fmt.Println("locked")
		<-ctx.Done()
		return context.WithoutCancel(ctx) // what no program should do: it does not look at its context
	}
	if err := shop.ship(ctx, "cancelled"); err != nil {
		fmt.Println("refused:", err)
	} else {
		fmt.Println("committed")
	}
	return nil
}
