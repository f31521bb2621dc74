package core

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// acquisition is one call that wants a lease. Only the call's own goroutine uses it.
type acquisition struct {
	engine  *engine
	ctx     context.Context
	name    string
	cfg     *config
	handoff string // hash of the hand-off to take the name over with; "" once an attempt was answered

	began time.Time // and so the wait budget

	seen    seen
	refused bool   // the backend has told this very call that the name is held
	waited  bool   // observers are told
	woken   bool   // from its queue
	behind  bool   // a lease of this process, until it was woken
	others  bool   // waited at the backend when that lease was granted
	follows bool   // one that has given up: it may soon do so too, so it makes no offer in its first wait
	told    bool   // observers know that it has waited for long
	late    bool   // its budget is over: it waits for the outcome of an attempt under way
	limited bool   // observers were told that another limit counts
	token   *token // that is being tried, or nil
	offered offer  // of that token
	waits   *waits // made by the first wait that is not for a turn
}

// once says that the call makes one attempt and waits for no holder.
func (a *acquisition) once() bool { return a.cfg.wait == 0 }

// heldError is the error for a name that has a holder. It says so if that is another call of this
// process, since this call may be a part of that one's work.
func (a *acquisition) heldError() error {
	err := a.seen.heldError(a.name)
	if a.engine.outer(a.ctx, a.name) == nil {
		err.Here, err.HeldFor = a.engine.names.here(a.name)
	}
	return err
}

// beginWait tells observers, once, that the call has found the name held and waits.
func (a *acquisition) beginWait() {
	if a.waited {
		return
	}
	a.waited = true
	if events := a.engine.events; events != nil {
		events.add(a.engine, WaitingEvent{a.cfg.subject(a.ctx, a.name)})
	}
}

// overBudget is the error for the end of the wait budget.
func (a *acquisition) overBudget() error {
	switch {
	case a.seen.held != nil && (a.seen.err == nil || !a.once()):
		return a.heldError()
	case a.seen.err != nil && a.behind && errors.Is(a.seen.err, errTooShort):
		a.seen.merge(seen{held: &driver.Held{}, at: time.Now()})
		return a.heldError() // it was held for all of the budget, except for a rest that was too short for an answer
	case a.seen.err != nil:
		return a.seen.err
	default:
		return &unavailableError{"acquire", a.name, errNotAsked}
	}
}

// ended is the error for the end of the caller's ctx. The backend's client can see the deadline a
// moment before the ctx ends; then ended waits for that moment.
func (a *acquisition) ended() error {
	if a.ctx.Err() == nil {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-a.ctx.Done():
		case <-timer.C:
		}
	}
	ended := a.ctx.Err()
	if ended == nil { // there are contexts that do not keep their deadlines
		ended = context.DeadlineExceeded
	}
	switch {
	case a.seen.held != nil:
		return &endedError{ended, a.heldError()}
	case a.seen.err != nil:
		return &endedError{ended, a.seen.err}
	default:
		return &endedError{ended, &unavailableError{"acquire", a.name, errNotAsked}}
	}
}

// tooLate says that the caller's ctx is over, if only by the clock.
func (a *acquisition) tooLate() bool {
	deadline, ok := a.ctx.Deadline()
	return a.ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// giveUp ends the call's part in the queue, and its token, after an error.
func (a *acquisition) giveUp(w *waiter, err error) {
	if err == nil {
		return
	}
	unheard, empty := a.engine.names.leave(w, a.quits(err))
	if unheard.lease != nil {
		a.giveBack(unheard.lease)
	}
	if a.token == nil && empty != nil {
		a.token = newToken(a.engine, a.name, a.cfg)
	}
	if a.token != nil {
		a.token.giveUp(a.ctx, empty, a.offered)
	}
}

// giveBack ends a lease whose caller has gone. Observers are told of its begin and of its end, so
// that counts of leases stay right.
func (a *acquisition) giveBack(x *Lease) {
	x.tenure.forgo()
	if a.engine.events != nil {
		a.acquired(x, a.cfg.subject(a.ctx, a.name))
	}
	end := func() { _ = x.end(a.ctx, false) } // told to observer and log
	if a.ctx.Err() != nil {
		a.engine.spawn(end) // its caller must not wait any longer
		return
	}
	end()
}

// quits says of the error of a call that its caller left the queue before there was an answer.
func (a *acquisition) quits(err error) bool {
	_, ended := errors.AsType[*endedError](err)
	return ended || errors.Is(err, ErrHeld) && !a.once()
}

// tellLimit tells observers, once, that n counts instead of the caller's limit.
func (a *acquisition) tellLimit(n int) {
	if n > 0 && !a.limited && a.engine.events != nil {
		a.limited = true
		a.engine.events.add(a.engine, LimitedEvent{a.cfg.subject(a.ctx, a.name), a.cfg.limit, n})
	}
}

func (a *acquisition) report(x *Lease, err error) {
	subject := a.cfg.subject(a.ctx, a.name)
	took := subject.At.Sub(a.began)
	add := func(event any) { a.engine.events.add(a.engine, event) }
	if a.waited {
		add(WaitedEvent{subject, took, err})
	}
	_, held := errors.AsType[*HeldError](err)
	switch {
	case err == nil:
		a.acquired(x, subject)
	case held:
		add(HeldEvent{subject, took, a.saidHeld(subject.At)})
	default:
		add(FailedEvent{subject, took, err})
	}
}

// saidHeld is when the backend itself last said that the name is held: this process may have known it
// without asking.
func (a *acquisition) saidHeld(now time.Time) time.Time {
	if a.seen.heldAt == 0 {
		return time.Time{}
	}
	return now.Add(-a.engine.clock.Now().Sub(a.seen.heldAt))
}

func (a *acquisition) acquired(x *Lease, subject Subject) {
	took, local := subject.At.Sub(a.began), x.tenure.local
	a.engine.events.add(a.engine, AcquiredEvent{subject, took, x.Fence(), x.inside != nil, local})
	if local && x.inside == nil {
		a.engine.events.add(a.engine, DegradedEvent{subject, took, a.seen.err})
	}
}
