package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// For tests of this package that are outside of it.

// Parts returns the leases of a set, or the one lease.
func Parts(held any) []*Lease {
	if s, ok := held.(*LeaseSet); ok {
		return s.leases
	}
	return []*Lease{held.(*Lease)}
}

// Token returns the token of the lease's grant.
func (x *Lease) Token() string {
	if x == nil || x.hold == nil {
		return ""
	}
	return x.hold.Claim.Cleaner().Token
}

// Inside returns the lease that x has re-entered, nil if it has not.
func (x *Lease) Inside() *Lease {
	if x == nil || x.root() == x {
		return nil
	}
	return x.more.inside
}

// Remains lists what l still keeps: nothing, once nobody holds or wants a name.
func (l *Locker) Remains() (left []string) {
	if l == nil || l.engine == nil {
		return nil
	}
	r := l.engine
	say := func(n int, what string) {
		if n != 0 {
			left = append(left, fmt.Sprintf("%d %s", n, what))
		}
	}
	waiting, lines := r.room.Table.Waiting()
	say(waiting, "waiting")
	say(lines, "lines")
	say(r.room.Dog.Count(), "watched")
	say(int(r.waiters.Load()), "waiters")
	say(r.tasks.Count(), "goroutines under way")
	say(r.calls.Count(), "calls under way")
	return left
}

// Check asks the backend whether the lease still stands, and prolongs nothing.
func (x *Lease) Check(ctx context.Context) error {
	if err := x.Err(); err != nil {
		return err
	}
	ask := x.hold.Claim.Cleaner()
	ask.TTL, ask.Limit = 0, x.want.Limit
	ctx, cancel := context.WithTimeout(ctx, min(x.cfg.TTL/5, 2*time.Second))
	defer cancel()
	err := x.engine.driver.Renew(ctx, []driver.Claim{ask})[0]
	if errors.Is(err, driver.ErrNotOwner) {
		_, life := x.hold.Left(x.engine.clock.Read())
		x.hold.Refresh(ctx, x.engine.room.Port, life) // finds that out, too
	}
	return cmp.Or(x.Err(), err)
}

// Inners is how many leases have re-entered x and are not forgotten.
func (x *Lease) Inners() (n int) {
	if x.none() {
		return 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for y := x.seen().inners; y != nil; y = y.more.next {
		n++
	}
	return n
}
