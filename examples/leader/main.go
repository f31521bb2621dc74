// Leader shows one active scheduler among three, with nothing to set up:
//
//	go run ./examples/leader
//
// Three processes campaign for the same name, and one of them works. It is killed with
// kill -9, and another one takes over within the TTL; that one is told to stop, resigns, and
// the third takes over at once.
//
// Redis is an embedded miniredis; -redis host:port takes a real server, which is left as it
// was. The exit status is 0 only if all went as the output says.
//
// The files: node.go is what each process does, and all that is yours to write; cluster.go
// starts and watches them.
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
)

func main() { os.Exit(run()) }

func run() int {
	if n, ok := nodeFromEnv(); ok { // this is one of the three
		return n.run()
	}
	address := flag.String("redis", "", "a Redis server, as `host:port`, in place of the embedded miniredis")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "leader: unexpected argument %q\n", flag.Arg(0))
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
	c, err := newCluster(ctx, out, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close(context.WithoutCancel(ctx))) }()

	fmt.Fprintf(out, "Three processes campaign, the TTL is %s\n\n", ttl)
	for number := 1; number <= 3; number++ {
		if err := c.start(ctx, number); err != nil {
			return err
		}
	}
	first, _, err := c.newLeader(ctx)
	if err != nil {
		return err
	}

	fmt.Fprintf(out, "\nkill -9 of process %d\n\n", first)
	if err := c.kill(first); err != nil {
		return err
	}
	second, took, err := c.newLeader(ctx)
	if err != nil {
		return err
	}
	if took > 2*ttl { // it is less than one; a busy machine may take its time to say so
		return fmt.Errorf("it took %s until another one led", took)
	}

	fmt.Fprintf(out, "\nProcess %d is told to stop, as by SIGTERM\n\n", second)
	if err := c.stop(second); err != nil {
		return err
	}
	_, took, err = c.newLeader(ctx)
	if err != nil {
		return err
	}
	if took > ttl*2/3 { // the least that is left of a lease that is renewed
		return fmt.Errorf("it took %s until another one led: that was no resignation", took)
	}
	fmt.Fprintln(out, "\nAll as promised.")
	return nil
}
