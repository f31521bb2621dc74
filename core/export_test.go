package core

import "fmt"

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
	say(int(r.tasks.Load()), "calls and goroutines under way")
	return left
}
