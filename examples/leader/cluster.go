package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// cluster is the three processes and their Redis.
type cluster struct {
	out      io.Writer
	rdb      *redis.Client
	embedded *miniredis.Miniredis // nil with a server of the user's
	prefix   string
	nodes    map[int]*process
	lines    chan string // what the processes tell
	pipe     *os.File    // where they do

	leader int // 0 if nobody leads
	fence  uint64
	since  time.Time // since when there is no leader
}

type process struct {
	cmd   *exec.Cmd
	input io.Closer
}

func newCluster(ctx context.Context, out io.Writer, address string) (*cluster, error) {
	logging.Disable() // what goes wrong comes back as an error
	c := &cluster{out: out, prefix: "leader-" + strings.ToLower(rand.Text()[:8]) + ":", nodes: make(map[int]*process)}
	if address == "" {
		m, err := miniredis.Run()
		if err != nil {
			return nil, err
		}
		m.ClockTTL(true)
		c.embedded, address = m, m.Addr()
	}
	c.rdb = redis.NewClient(&redis.Options{Addr: address, DialTimeout: 2 * time.Second})
	bounded, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := c.rdb.Ping(bounded).Err(); err != nil {
		return nil, fmt.Errorf("no Redis at %s: %w", address, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.pipe, c.lines = w, make(chan string)
	go func() {
		defer close(c.lines)
		defer r.Close()
		for scan := bufio.NewScanner(r); scan.Scan(); {
			c.lines <- scan.Text()
		}
	}()
	return c, nil
}

// start starts this program as one of the three.
func (c *cluster) start(ctx context.Context, number int) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(node{number, c.rdb.Options().Addr, c.prefix, os.Getenv(sabotageEnv) == ""})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), exe) //nolint:gosec // G204: the program itself, which ends with its input
	cmd.Env = append(os.Environ(), nodeEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = c.pipe, os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	c.nodes[number] = &process{cmd, input}
	return cmd.Start()
}

// sabotageEnv leaves the lock out, for the test that has the example fail.
const sabotageEnv = "HOLDFAST_EXAMPLE_UNGUARDED"

// newLeader waits until another process leads and has worked three times. It says how long
// there was no leader.
func (c *cluster) newLeader(ctx context.Context) (number int, took time.Duration, err error) {
	for worked := 0; worked < 3; {
		var line, what string
		var fence uint64
		select {
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		case line = <-c.lines:
		}
		if _, err := fmt.Sscan(line, &number, &what, &fence); err != nil {
			return 0, 0, fmt.Errorf("%q: %w", line, err)
		}
		switch {
		case what == ticks && c.leader == 0: // it was written before the end
		case what == ticks && number == c.leader && fence == c.fence:
			worked++
			fmt.Fprintf(c.out, "   process %d works\n", number)
		case what == leads && c.leader == 0 && fence > c.fence:
			took = time.Since(c.since)
			after := ""
			if c.fence > 0 {
				after = fmt.Sprintf(", %.1f s later, with a larger fence", took.Seconds())
			}
			fmt.Fprintf(c.out, "   process %d leads%s\n", number, after)
			c.leader, c.fence = number, fence
		default:
			return 0, 0, fmt.Errorf("process %d %s with fence %d, while process %d leads with fence %d",
				number, what, fence, c.leader, c.fence)
		}
	}
	return c.leader, took, nil
}

// kill ends a process without a chance to clean up.
func (c *cluster) kill(number int) error {
	p := c.nodes[number]
	delete(c.nodes, number)
	c.leader, c.since = 0, time.Now()
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
	return err
}

// stop tells a process to end.
func (c *cluster) stop(number int) error {
	c.leader, c.since = 0, time.Now()
	return c.nodes[number].input.Close()
}

// close ends what is left, and leaves nothing on the server.
func (c *cluster) close(ctx context.Context) error {
	go func() {
		for range c.lines { // what they tell in the end is not of interest
		}
	}()
	var errs []error
	for number, p := range c.nodes {
		_ = p.input.Close() // it may be closed already
		if err := p.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("process %d: %w", number, err))
		}
	}
	errs = append(errs, c.pipe.Close())
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	keys := c.rdb.Scan(ctx, 0, "*"+c.prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		errs = append(errs, c.rdb.Unlink(ctx, keys.Val()).Err())
	}
	errs = append(errs, keys.Err(), c.rdb.Close())
	if c.embedded != nil {
		c.embedded.Close()
	}
	return errors.Join(errs...)
}
