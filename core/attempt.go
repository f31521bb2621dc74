package core

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// contend is the contender's loop.
func (a *acquisition) contend(w *waiter) (*Lease, error) {
	p := pace{acquisition: a, waiter: w}
	for {
		if a.tooLate() {
			return nil, errPassed
		}
		if x, err := a.try(w, &p); x != nil || err != nil {
			return x, err
		}
		if a.once() {
			return nil, a.overBudget()
		}
		if err := p.pause(); err != nil {
			return nil, err
		}
	}
}

// try makes one attempt. No lease and no error means to go on.
func (a *acquisition) try(w *waiter, p *pace) (*Lease, error) {
	if a.failed != nil && time.Since(a.answered) >= a.cfg.ttl {
		if a.silent(a.failed) {
			return a.degrade(w, p, a.failed)
		}
		return nil, a.failed
	}
	if because := a.outage(); because != nil {
		return a.degrade(w, p, because)
	}
	if a.token == nil {
		a.token = newToken(a.engine, a.name, a.cfg)
	}
	claim := a.token.claim()
	claim.Handoff = a.handoff
	if held := a.engine.names.try(w, &claim); held != nil {
		a.heldHere(w, held)
		p.unanswered()
		return nil, nil //nolint:nilnil // documented: go on
	}
	if !a.engine.can.Block {
		claim.Fences = 0
	}
	began := time.Now()
	grant, asked, err := a.request(w, claim)
	now := time.Now()
	if err == nil {
		p.unanswered() // if it comes too late
		return a.granted(w, grant, asked)
	}
	if held, ok := errors.AsType[*driver.Held](err); ok {
		a.answered = now
		a.failed = nil
		a.handoff = "" // used, over, or of no lease: it will never be good
		a.refused, a.heldAt = true, max(1, a.engine.clock.Now())
		a.known = a.held(held, 0)
		a.limited(held.Limit)
		a.engine.names.refused(w, seen{at: now, answered: now, held: held, heldAt: a.heldAt})
		p.heldBy(held)
		return nil, nil //nolint:nilnil // documented: go on
	}
	if done, ok := errors.AsType[*driver.Duplicate](err); ok {
		refusal := &DuplicateError{a.name, done.Label}
		a.engine.names.refused(w, seen{at: now, answered: now, done: refusal, scope: a.cfg.scope})
		if handoff := a.handoff; handoff != "" { // nobody else will come for the name
			a.engine.spawn(func() { a.engine.recall(a.ctx, a.cfg, a.name, handoff) })
		}
		return nil, refusal
	}
	if a.late() {
		a.suspect()
		return nil, a.ended() // says nothing about the backend: those who watch try themselves
	}
	err = a.judge(err, now.Sub(began))
	if a.silent(err) {
		return a.degrade(w, p, err)
	}
	a.fail(w, err)
	p.unanswered()
	return nil, nil //nolint:nilnil // documented: go on
}

// patience is how long the next attempt may take. A budget cuts it, but never below what a
// call without a budget has.
func (a *acquisition) patience() time.Duration {
	bound := a.cfg.attemptTimeout()
	if a.cfg.wait == WaitForever {
		return bound
	}
	spent := time.Since(a.began)
	return min(bound, max(a.cfg.wait, bound)-spent)
}

func (a *acquisition) fail(w *waiter, err error) {
	a.failed = err
	v := seen{at: time.Now(), answered: a.answered, err: err, heldAt: a.heldAt}
	if errors.Is(err, errTooShort) { // that is about this call's time, and no news for others
		v.err = nil
	}
	a.engine.names.refused(w, v)
}

// granted makes a lease of a grant, unless that is nearly over already, or nobody wants it
// any more: then it is given back.
func (a *acquisition) granted(w *waiter, g driver.Grant, asked clock.Reading) (*Lease, error) {
	ttl := a.cfg.ttl
	if g.TTL > 0 {
		ttl = min(ttl, g.TTL)
	}
	life, now := trust(ttl), a.engine.clock.Read()
	if life-now.Since(asked) < ttl/3 {
		a.refuse(a.token)
		a.token = nil
		a.fail(w, &unavailableError{"acquire", a.name, errLate})
		return nil, nil //nolint:nilnil // documented by try: go on
	}
	a.limited(g.Limit)
	t := newTenure(a.token, a.cfg, g, ttl, asked)
	if a.cfg.maxHold > 0 {
		t.holdEnd = now.Awake().Add(a.cfg.maxHold)
	}
	a.token = nil // the tenure's from here on
	x := w.lease
	if x == nil {
		x = newLease(a.ctx, a.cfg, a.name)
	}
	x.bind(t, 0, now)
	t.first, t.leases = x, x
	if held := a.engine.names.granted(w, t); held != nil {
		a.refuse(t.token)
		a.heldHere(w, held)
		return nil, nil //nolint:nilnil // documented by try: go on
	}
	if !a.engine.watchdog.add(t) {
		a.giveBack(x)
		return nil, ErrClosed
	}
	if a.ctx.Err() != nil {
		a.giveBack(x)
		return nil, a.ended()
	}
	return x, nil
}

// refuse gives back what a token was granted. The next attempt waits for that, but not the end of its caller.
func (a *acquisition) refuse(b *token) {
	given := make(chan struct{})
	a.engine.spawn(func() {
		defer close(given)
		b.giveBack(a.ctx)
	})
	select {
	case <-given:
	case <-a.ctx.Done():
	case <-a.engine.closing:
	}
}

// giveBack ends a lease whose caller has gone. Observers see it come and go: its end is told
// to those who count.
func (a *acquisition) giveBack(x *Lease) {
	x.tenure.forgo()
	if a.engine.events != nil {
		a.acquired(x, a.cfg.subject(a.ctx, a.name))
	}
	end := func() { _ = x.end(a.ctx, false) } // told to observer and log
	if a.ctx.Err() != nil {
		a.engine.spawn(end) // its caller has waited for long enough
		return
	}
	end()
}
