package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"

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

// Token returns the token of the lease's tenure.
func (x *Lease) Token() string {
	if x == nil || x.tenure == nil {
		return ""
	}
	return x.tenure.token.secret
}

// Inside returns the lease that x has re-entered, nil if it has not.
func (x *Lease) Inside() *Lease {
	if x == nil {
		return nil
	}
	return x.inside
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
	r.names.mu.Lock()
	say(len(r.names.queues), "queues")
	say(len(r.names.holders.alone), "holders alone")
	say(len(r.names.holders.beside), "holders beside others")
	r.names.mu.Unlock()
	r.watchdog.mu.Lock()
	say(len(r.watchdog.schedule), "schedule")
	r.watchdog.mu.Unlock()
	say(r.watchdog.remaining(), "tenures")
	k := &r.watchdog.renewers
	k.mu.Lock()
	say(len(k.due), "renewals")
	say(k.running, "renewers")
	k.mu.Unlock()
	say(int(r.waiters.Load()), "waiters")
	say(int(r.tasks.Load()), "goroutines under way")
	say(int(r.gate.calls.Load()), "calls under way")
	return left
}

// Check asks the backend whether the lease still stands, and prolongs nothing.
func (x *Lease) Check(ctx context.Context) error {
	if err := x.Err(); err != nil {
		return err
	}
	t := x.tenure
	claim := t.token.claim()
	claim.TTL = 0
	ctx, cancel := context.WithTimeout(ctx, min(t.cfg.renewTimeout(), t.left()))
	defer cancel()
	answers, ok := callApart(ctx, t.engine, func(ctx context.Context) []error {
		return t.engine.driver.Renew(ctx, []driver.Claim{claim})
	}, nil)
	if !ok {
		return cmp.Or(x.Err(), errNoAnswer)
	}
	err := answers[0]
	now := t.engine.clock.Read()
	t.locked(now, func() {
		if errors.Is(err, driver.ErrNotOwner) {
			t.lose(ReasonTaken, now)
		}
	})
	return cmp.Or(x.Err(), err)
}
