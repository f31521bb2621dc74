package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// acquisition is one call that wants a lease.
type acquisition struct {
	engine  *engine
	ctx     context.Context
	name    string
	cfg     *config
	handoff string // to take the name over with, until an attempt was answered

	began    time.Time
	deadline time.Time // of the wait budget, or, without one, of the wait for somebody else's attempt; zero for none

	seen    seen
	refused bool    // the backend has told this very call that the name is held
	waited  bool    // observers are told
	woken   bool    // from its queue
	behind  bool    // a lease of this process, until it was woken
	limited bool    // observers were told that another limit counts
	token   *token  // that is being tried, nil if there is none
	old     *tenure // of this process, to yield in the same step
	waits   *waits  // made by the first wait that is not for a turn
	backoff backoff // of the contender
}

// acquire gets a lease, or says why not.
func (l *Locker) acquire(ctx context.Context, name string, c *config) (*Lease, error) {
	return l.attach(ctx, name, c, "")
}

// attach is acquire with the hash of a hand-off, which may be none.
func (l *Locker) attach(ctx context.Context, name string, c *config, handoff string) (*Lease, error) {
	r := l.engine
	r.enter()
	defer r.leave()
	if err := r.checkName(name); err != nil {
		return nil, err
	}
	now := time.Now()
	a := &acquisition{engine: r, ctx: ctx, name: name, cfg: c, handoff: handoff, began: now, seen: seen{answered: now}}
	switch {
	case a.once():
		a.deadline = now.Add(c.attemptTimeout())
	case c.wait != WaitForever:
		a.deadline = now.Add(c.wait)
	}
	x, err := a.run()
	a.waits.stop()
	if r.events != nil {
		a.report(x, err)
	}
	return x, err
}

func (a *acquisition) run() (*Lease, error) {
	if a.engine.closed() {
		return nil, ErrClosed
	}
	if a.ctx.Err() != nil {
		return nil, a.ended()
	}
	if !a.cfg.noReentry {
		if outer := a.engine.outer(a.ctx, a.name); outer != nil {
			if x, err := a.reenter(outer); x != nil || err != nil {
				return x, err
			}
		}
	}
	if r := a.engine; r.watchdog.kept.Load() >= int64(r.maxLeases) {
		return nil, a.overCap("WithMaxLeases", r.maxLeases)
	}
	var x *Lease
	var err error
	if a.once() {
		x, err = a.single()
	} else {
		x, err = a.enqueue()
	}
	if a.silent(err) { // somebody else of this process has asked, who fails closed
		return a.overtake(err)
	}
	return x, err
}

// once says that the call makes one attempt and waits for no holder.
func (a *acquisition) once() bool { return a.cfg.wait == 0 }

// single makes one attempt, unless this process knows the answer already or is about to.
func (a *acquisition) single() (*Lease, error) {
	w := &waiter{cfg: a.cfg}
	if a.cfg.together() || a.handoff != "" {
		x, err := a.alone(w)
		if x == nil && err == nil {
			err = a.overBudget()
		}
		a.giveUp(w, err)
		return x, err
	}
	for {
		joined, known, watch := a.engine.names.joinAlone(a.name, w)
		if joined {
			x, err := a.contend(w)
			a.giveUp(w, err)
			return x, err
		}
		if watch != nil {
			var err error
			if known, err = a.watch(watch); err != nil {
				return nil, err
			}
		}
		if err := a.learn(known); err != nil {
			return nil, err
		}
	}
}

// enqueue waits in this process's queue for one of as many callers as may wait, until it is given a turn of
// a tenure, or it is the contender and has asked the backend until there is a lease or a reason to stop.
func (a *acquisition) enqueue() (*Lease, error) {
	r := a.engine
	defer r.waiters.Add(-1)
	if r.waiters.Add(1) > int64(r.maxWaiters) {
		return nil, a.overCap("WithMaxWaiters", r.maxWaiters)
	}
	w := &waiter{cfg: a.cfg, lease: newLease(a.ctx, a.cfg, a.name)}
	if a.handoff != "" || a.cfg.together() && !r.names.wanted(a.cfg.queueKey(a.name)) {
		if x, err := a.alone(w); x != nil || err != nil {
			a.giveUp(w, err)
			return x, err
		}
	}
	x, err := a.waitTurn(w)
	if x == nil && err == nil {
		x, err = a.contend(w)
	}
	a.giveUp(w, err)
	if err == errPassed { //nolint:errorlint // contend's own, as it is
		err = a.outlive()
	}
	return x, err
}

// alone makes one attempt beside the queue, for a lease that leaves the name to others: a
// process's readers do not have to ask one after the other. It overtakes nobody, as the
// backend refuses it while anybody waits there. Nor does one with a hand-off: the name
// is not free, but kept for it.
func (a *acquisition) alone(w *waiter) (*Lease, error) {
	a.engine.names.joinNone(w)
	x, err := a.try(w)
	if x == nil {
		a.engine.names.leave(w, false)
	}
	return x, err
}

// giveUp ends the call's part in the line and its token, after an error.
func (a *acquisition) giveUp(w *waiter, err error) {
	if err == nil {
		return
	}
	unheard, empty := a.engine.names.leave(w, a.quits(err))
	if unheard.lease != nil {
		a.giveBack(unheard.lease)
	}
	a.giveUpOld(unheard.old)
	a.giveUpOld(a.old)
	if a.token == nil && empty != nil {
		a.token = newToken(a.engine, a.name, a.cfg)
	}
	if a.token != nil {
		a.token.giveUp(a.ctx, empty)
	}
}

// giveUpOld releases a tenure that this call should have yielded.
func (a *acquisition) giveUpOld(t *tenure) {
	if t != nil {
		ctx := context.WithoutCancel(a.ctx)
		a.engine.spawn(func() { _ = release{tenure: t}.run(ctx) }) // told to observer and log
	}
}

// overCap is the refusal of what would be more than the process keeps: a flood of names, or of
// callers for one that is stuck, ends in errors and not with the memory.
func (a *acquisition) overCap(option string, n int) error {
	return &unavailableError{"acquire", a.name, fmt.Errorf("not asked: %s(%d) of this process is reached", option, n)}
}

// overBudget is the error for the end of the wait budget.
func (a *acquisition) overBudget() error {
	switch {
	case a.seen.held != nil && (a.seen.err == nil || !a.once()):
		return a.seen.heldError(a.name)
	case a.seen.err != nil && a.behind && errors.Is(a.seen.err, errTooShort):
		a.seen.merge(seen{held: &driver.Held{}, at: time.Now()})
		return a.seen.heldError(a.name) // it was held for all of the budget except what did not do for an answer
	case a.seen.err != nil:
		return a.seen.err
	default:
		return &unavailableError{"acquire", a.name, errNotAsked}
	}
}

// ended is the error for the end of the caller's ctx. Where the backend's client has seen its
// deadline a moment before the ctx did, that is given the moment.
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
		return &endedError{ended, a.seen.heldError(a.name)}
	case a.seen.err != nil:
		return &endedError{ended, a.seen.err}
	default:
		return &endedError{ended, &unavailableError{"acquire", a.name, errNotAsked}}
	}
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
		add(HeldEvent{subject, took})
	default:
		add(FailedEvent{subject, took, err})
	}
}

func (a *acquisition) acquired(x *Lease, subject Subject) {
	took, local := subject.At.Sub(a.began), x.tenure.local
	a.engine.events.add(a.engine, AcquiredEvent{subject, took, x.Fence(), x.inside != nil, local})
	if local && x.inside == nil {
		a.engine.events.add(a.engine, DegradedEvent{subject, took, a.seen.err})
	}
}
