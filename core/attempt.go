package core

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/callctx"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// contend is the contender's loop.
func (a *acquisition) contend(w *waiter) (*Lease, error) {
	for {
		if a.tooLate() {
			return nil, errPassed
		}
		if x, err := a.try(w); x != nil || err != nil {
			return x, err
		}
		if a.once() {
			return nil, a.overBudget()
		}
		if err := a.pause(w); err != nil {
			return nil, err
		}
	}
}

// try makes one attempt. No lease and no error means to go on.
func (a *acquisition) try(w *waiter) (*Lease, error) {
	if err := a.seen.err; err != nil && time.Since(a.seen.answered) >= a.cfg.ttl {
		if a.silent(err) {
			return a.degrade(w, err)
		}
		return nil, err
	}
	if because := a.outage(); because != nil {
		return a.degrade(w, because)
	}
	if a.token == nil {
		a.token = newToken(a.engine, a.name, a.cfg)
	}
	claim := a.token.claim()
	claim.Handoff = a.handoff
	if held := a.engine.names.try(w, &claim); held != nil {
		a.heldHere(w, held)
		a.backoff.unanswered()
		return nil, nil //nolint:nilnil // documented: go on
	}
	if !a.engine.can.Block {
		claim.Fences = 0
	}
	began := time.Now()
	grant, asked, err := a.request(w, claim)
	now := time.Now()
	if err == nil {
		a.backoff.unanswered() // if it comes too late
		return a.granted(w, grant, asked)
	}
	if held, ok := errors.AsType[*driver.Held](err); ok {
		a.handoff = "" // used, over, or unknown to the lock service: it will never be of use
		v := seen{held: held, at: now, answered: now, heldAt: max(1, a.engine.clock.Now())}
		a.refused, a.seen.err = true, nil
		a.seen.merge(v)
		a.tellLimit(held.Limit)
		a.engine.names.refused(w, v)
		a.backoff.heldBy(held, a.cfg.recheck(), a.engine.queuer != nil)
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
		return nil, a.ended() // says nothing about the backend: callers that watch this attempt ask themselves
	}
	err = a.judge(err, now.Sub(began))
	if a.silent(err) {
		return a.degrade(w, err)
	}
	a.fail(w, err)
	a.backoff.unanswered()
	return nil, nil //nolint:nilnil // documented: go on
}

// patience is how long the next attempt may take. The wait budget limits it, but never to less than
// a call without a budget has.
func (a *acquisition) patience() time.Duration {
	bound := a.cfg.attemptTimeout()
	if a.cfg.wait == WaitForever {
		return bound
	}
	spent := time.Since(a.began)
	return min(bound, max(a.cfg.wait, bound)-spent)
}

func (a *acquisition) fail(w *waiter, err error) {
	a.seen.err = err
	v := seen{answered: a.seen.answered, err: err, heldAt: a.seen.heldAt}
	if errors.Is(err, errTooShort) { // that is about this call's time, and tells others nothing
		v.err = nil
	}
	a.engine.names.refused(w, v)
}

// granted makes a lease of a grant. If the grant is already nearly over, or nobody wants it any
// more, it is given back.
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
	a.tellLimit(g.Limit)
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

// refuse gives back what a token was granted. The next attempt waits for that, except if the
// caller's wait is over.
func (a *acquisition) refuse(b *token) {
	given := make(chan struct{})
	a.engine.spawn(func() {
		defer close(given)
		b.giveBack(a.ctx)
	})
	select {
	case <-given:
	case <-a.waiting().Done():
	}
}

// request makes one attempt. If this process has a tenure whose turns are over, that tenure is
// yielded in the same command. The command may put this process in the backend's queue, so its
// place is made before.
func (a *acquisition) request(w *waiter, c driver.Claim) (grant driver.Grant, asked clock.Reading, err error) {
	patience := a.patience()
	if old := a.old; old != nil {
		began := time.Now()
		a.old = nil
		place := a.engine.names.lineUp(w)
		c.Place = place.id
		if grant, asked, err = a.yield(old, c, place); !outcomeOpen(err) && !errors.Is(err, driver.ErrNotSent) {
			return grant, asked, err
		}
		patience = max(patience-time.Since(began), patience/4) // both commands together are one attempt
	}
	return a.token.attempt(a.ctx, patience, c)
}

// yielded is the outcome of a driver.Yielder's call.
type yielded struct {
	grant           driver.Grant
	errNext, errOld error
}

// yield sends one command that releases old and asks for c. If the outcome for old stays open, the
// release of old settles it in the background. If the outcome for c stays open, the attempt that
// follows settles it, with the same token.
func (a *acquisition) yield(old *tenure, c driver.Claim, at *place) (grant driver.Grant, asked clock.Reading, err error) {
	old.token.to(tokenEnding)
	asked = a.engine.clock.Read()
	if asked.Since(old.asked) >= old.life { // no command carries its token any more
		a.giveUpOld(old)
		return grant, asked, driver.ErrNotSent
	}
	ctx, cancel := a.engine.within(a.ctx, a.engine.patience(a.ctx, a.patience())/2)
	defer cancel()
	y := a.sendYield(ctx, old.token.claim(), c, at)
	a.engine.latency.heard(asked, a.engine.clock.Read(), !outcomeOpen(y.errNext))
	if failed(y.errOld) {
		caller := context.WithoutCancel(a.ctx)
		a.engine.spawn(func() { _ = release{old, outcomeOpen(y.errOld)}.run(caller) }) // told to observer and log
	} else {
		r := release{tenure: old}
		_ = r.over(y.errOld) // as above
	}
	if outcomeOpen(y.errNext) {
		a.token.doubt()
		a.token.doubtPlace(at)
	}
	return y.grant, asked, y.errNext
}

func (a *acquisition) sendYield(ctx context.Context, old, next driver.Claim, at *place) yielded {
	call := func(ctx context.Context) (y yielded) {
		y.grant, y.errNext, y.errOld = a.engine.yielder.Yield(ctx, old, next)
		return y
	}
	if callctx.Is(ctx) {
		return call(ctx)
	}
	b := a.token
	y, ok := callApart(ctx, a.engine, call, func(late yielded) {
		b.lateReply(ctx, reply{late.grant, late.errNext})
		b.leaveAgain(ctx, at)
	})
	if !ok {
		y.errNext, y.errOld = errNoAnswer, errNoAnswer
	}
	return y
}
