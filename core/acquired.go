package core

import (
	"context"
	"errors"
)

// What observers are told of a call, and the context of the work.

// report tells observers what the call has come to.
func (a *acquisition) report(x *Lease, err error) {
	if a.waited && a.engine.observes(EventWaited) {
		a.engine.tell(a.outcome(EventWaited, err))
	}
	if err == nil {
		a.acquired(x)
		return
	}
	kind := EventFailed
	if _, held := errors.AsType[*HeldError](err); held {
		kind = EventHeld
	}
	if a.engine.observes(kind) {
		a.engine.tell(a.outcome(kind, err))
	}
}

// outcome is an event about the end of the call.
func (a *acquisition) outcome(kind EventKind, err error) Event {
	e := a.cfg.event(a.ctx, kind, a.name)
	e.Took, e.Err, e.said = a.waitedFor(), err, a.engine.clock.Time(a.said)
	return e
}

func (a *acquisition) acquiredEvent(x *Lease) Event {
	e := a.cfg.event(a.ctx, EventAcquired, a.name)
	e.Took, e.Fence, e.Reentry, e.Degraded = a.waitedFor(), x.Fence(), x.root() != x, x.Degraded()
	return e
}

// acquired tells observers of x, and if x was lost meanwhile, of that.
func (a *acquisition) acquired(x *Lease) {
	var e Event
	told := a.engine.observes(EventAcquired)
	if told {
		e = a.acquiredEvent(x)
	}
	if x.root() == x && x.Degraded() {
		a.engine.tell(a.outcome(EventDegraded, a.unavailable(x.hold.Claim.Outage())))
	}
	x.root().mu.Lock()
	if told {
		a.engine.tell(e) // with the mutex held, so that nothing is told of x before
	}
	x.told = true
	due := x.stopped
	x.root().mu.Unlock()
	if due {
		x.tellLost(x.loss.Reason)
	}
}

// work has the context of the work made by whoever wants to. It is called without a mutex held, since that is code of the user.
//
// The lease can be lost meanwhile. Observers were then told of its end in the context that it had before.
func (a *acquisition) work(x *Lease) {
	for _, f := range a.engine.work {
		under := makeWork(f, x, a.acquiredEvent(x))
		x.mu.Lock()
		if under != nil && x.loss == nil {
			x.work.parent = under //nolint:fatcontext // each one gets what the one before has made
		}
		x.mu.Unlock()
	}
}

// makeWork asks f. A panic of it ends here, and the result is nil. If it ends the goroutine instead, nobody gets the lease, so it
// is given back.
func makeWork(f func(context.Context, Event) context.Context, x *Lease, e Event) (under context.Context) {
	returned := false
	defer func() {
		if returned {
			return
		}
		value := recover()
		if r := x.engine; r.log != nil {
			r.log.add(panicOf("WithWorkContext", "the work has its caller's context", value))
		}
		if value == nil {
			_ = x.end(context.WithoutCancel(x.work.parent), false) // observers are told
		}
	}()
	under = f(x.work.parent, e)
	returned = true
	return under
}
