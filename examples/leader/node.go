package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

const (
	ttl    = 2 * time.Second
	period = 300 * time.Millisecond // of the work
)

// node is one of the three processes.
type node struct {
	Number  int
	Redis   string
	Prefix  string // of the locks' keys
	Guarded bool   // false for the test that has the example fail
}

// lead runs the scheduler in this process whenever it is the leader, until ctx ends.
func (n node) lead(ctx context.Context, locks *core.Locker) error {
	return locks.Campaign(ctx, "scheduler", n.schedule,
		core.WithTTL(ttl), core.WithLabel(fmt.Sprintf("process %d", n.Number)))
}

// schedule is the work. It ends with its context: the process is told to stop, or has lost
// the lease.
func (n node) schedule(ctx context.Context) error {
	fence, _ := core.FenceFor(ctx, "scheduler") // goes along with every write
	n.tell(leads, fence)
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			n.tell(ticks, fence)
		}
	}
}

// nodeEnv makes this program one of them.
const nodeEnv = "HOLDFAST_LEADER_NODE"

func nodeFromEnv() (n node, ok bool) {
	text, ok := os.LookupEnv(nodeEnv)
	if ok && json.Unmarshal([]byte(text), &n) != nil {
		n.Redis = text // unreachable, and so reported
	}
	return n, ok
}

// run is the main function. It ends with its standard input: when the parent closes it, or dies.
func (n node) run() int {
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent
	logging.Disable()           // what goes wrong comes back as an error
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end too
		stop()
	}()
	rdb := redis.NewClient(&redis.Options{Addr: n.Redis})
	defer rdb.Close()
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix(n.Prefix)))
	if err == nil && n.Guarded {
		err = n.lead(ctx, locks)
	} else if err == nil {
		err = n.schedule(ctx)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "leader: process %d: %v\n", n.Number, err)
		return 1
	}
	return 0
}

// What a process tells.
const (
	leads = "leads"
	ticks = "works"
)

// tell writes one line: all processes write to the same pipe, so the lines are in the order
// in which things happened.
func (n node) tell(what string, fence uint64) { fmt.Println(n.Number, what, fence) }
