package core

import (
	"context"
	"fmt"
	"strconv"
)

// ErrDraining: the Locker takes no new work, because [Locker.Drain] was called. It matches
// [ErrUnavailable] too: somebody else may be able to do the work.
var ErrDraining error = &sentinel{"draining", "the process is about to stop and takes no new work"}

// Drain prepares a process for its end, before its servers are stopped: it refuses new work, waits
// until all work under way is done, and returns nil. Middleware then answers as if the lock service were
// unavailable: 503 with Retry-After, UNAVAILABLE, or a task that is retried. So clients and queues turn
// to another process, while this one still answers them.
//
//	_ = locks.Drain(work)     // new work is refused; what runs is finished
//	err := srv.Shutdown(ends) // then nobody is connected any more
//	err = locks.Close(ends)   // of a ctx of its own: that of the work may be over
//
// Work whose lease was lost is not waited for: it was told to stop, and holds nothing.
//
// New work gets [ErrDraining]. That includes calls that wait for a name, whose work has not begun, and an
// AcquireAll that has some of its names only. Work under way goes on: its leases are renewed, and calls in the context of a lease of this Locker still
// get other names. A leader of [Locker.Campaign] is under way too, so end its context first. A campaign
// that waits ends with ErrDraining.
//
// If ctx ends first, the error says how many leases are still in use. The Locker keeps refusing new
// work: there is no way back. Drain may be called again, and from several goroutines. Close ends it with
// [ErrClosed].
func (l *Locker) Drain(ctx context.Context) error {
	if l.none() {
		return errNoLocker
	}
	return l.engine.drain(ctx)
}

// Draining says that [Locker.Drain] or [Locker.Close] was called, for a health check that does not ask the
// lock service. [Locker.Ready] says it too.
func (l *Locker) Draining() bool { return !l.none() && l.engine.accept.Err() != nil }

func (r *engine) drain(ctx context.Context) error {
	r.refuse()
	r.room.Poke()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)() //nolint:contextcheck // the Locker's life ends the wait, too
	err := r.still(ctx)
	switch {
	case err == nil:
		return nil
	case r.life.Err() != nil:
		return ErrClosed
	default:
		return fmt.Errorf("holdfast: drain: %s still in use: %w", leases(r.room.Dog.Count()), err)
	}
}

// leases counts them in words.
func leases(n int) string {
	if n == 1 {
		return "1 lease"
	}
	return strconv.Itoa(n) + " leases"
}

// begun says that the call belongs to work under way. An AcquireAll that has only some of its names is no
// work yet.
func (a *acquisition) begun() bool { return a.working() != nil }

func (a *acquisition) working() *Lease {
	x := leaseOf(a.ctx)
	for ; x != nil; x = x.outer() {
		if x.engine == a.engine && (x.cfg.set == nil || x.cfg.set.whole.Load()) && x.live() {
			return x
		}
	}
	return nil
}

// refusal is what new work gets.
func (r *engine) refusal(op, name string) error {
	if r.life.Err() != nil {
		return ErrClosed
	}
	return &drainingError{unavailableError{op, name, ErrDraining}}
}

// drainingError has a type of its own in metrics: it is no outage.
type drainingError struct{ unavailableError }

func (e *drainingError) Error() string {
	return fmt.Sprintf("holdfast: %s: %v", e.subject(), ErrDraining)
}

func (e *drainingError) ErrorType() string { return "draining" }
