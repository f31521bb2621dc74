package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// fleet is a locker that is many. As far as a server can tell, each member is a process: it has
// connections, a watchdog, and places in queues of its own. The members live in a few processes, since
// hundreds of them would measure how this machine switches between processes.
type fleet struct {
	members []*holdfast
	next    atomic.Uint64
}

// hands is in how many processes a fleet lives.
func hands(members int) int {
	if members < 10 {
		return 1
	}
	return 4
}

// part is what falls to process i of n, of something that there is so often: from, and up to.
func part(all, i, n int) (from, to int) { return all * i / n, all * (i + 1) / n }

// openFleet opens what falls to this process of so many members.
func openFleet(e *env, members int, ttl time.Duration) (*fleet, error) {
	f := &fleet{}
	from, to := part(members, e.Proc, hands(members))
	for range to - from {
		var rdb redis.UniversalClient = client(e.Addr, e.traffic)
		locks, err := core.New(redislock.New(rdb), core.WithTTL(ttl))
		if err != nil {
			return nil, err
		}
		f.members = append(f.members, &holdfast{rdb, locks})
	}
	return f, nil
}

// lock asks through each member in turn.
func (f *fleet) lock(ctx context.Context, name string) (lease, error) {
	return f.member(int(f.next.Add(1))).lock(ctx, name) //nolint:gosec // G115: a small number
}

func (f *fleet) member(i int) *holdfast { return f.members[i%len(f.members)] }

func (f *fleet) close(ctx context.Context) error {
	var errs []error
	for _, m := range f.members {
		errs = append(errs, m.close(ctx))
	}
	return errors.Join(errs...)
}

// inFleet has a worker work with a fleet instead of one locker.
type inFleet struct {
	worker

	ctx     context.Context
	members int
	ttl     time.Duration
}

func (f *inFleet) prepare(e *env) error {
	one := e.locks
	var err error
	if e.locks, err = openFleet(e, f.members, f.ttl); err != nil {
		return err
	}
	if err := one.close(f.ctx); err != nil {
		return err
	}
	return f.worker.prepare(e)
}
