package core

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// contender is a call that asks the backend: for its queue, or beside it.
type contender struct {
	*acquisition
	waiter  *waiter
	backoff backoff
}

// contend asks until there is a lease, or a reason to stop.
func (c *contender) contend() (*Lease, error) {
	if c.others && c.engine.queuer != nil && !c.endsTooSoon() {
		if x, err := c.lineUpFirst(); x != nil || err != nil {
			return x, err
		}
	}
	for {
		if c.endsTooSoon() {
			return nil, errPassed
		}
		if x, err := c.try(); x != nil || err != nil {
			return x, err
		}
		if c.once() {
			return nil, c.overBudget()
		}
		if x, err := c.pause(); x != nil || err != nil {
			return x, err
		}
	}
}

// lineUpFirst waits in the backend's queue before the first attempt. The turns of this process are over, and the
// first of the others has the name by now, so an attempt would be in vain and cost a round trip.
func (c *contender) lineUpFirst() (*Lease, error) {
	held := &driver.Held{} // until now, by this process
	c.seen.merge(seen{held: held, at: time.Now()})
	c.backoff.heldBy(held, c.cfg.recheck(), true)
	c.own()
	return c.pause()
}

// own makes the token that attempts and waits carry, if there is none.
func (c *contender) own() {
	if c.token == nil {
		c.token = newToken(c.engine, c.name, c.cfg)
	}
}

// try makes one attempt. No lease and no error means to go on.
func (c *contender) try() (*Lease, error) {
	if err := c.seen.err; err != nil && time.Since(c.seen.answered) >= c.cfg.ttl {
		if c.silent(err) {
			return c.degrade(err)
		}
		return nil, err
	}
	if because := c.outage(); because != nil {
		return c.degrade(because)
	}
	c.own()
	claim := c.token.claim()
	claim.Handoff = c.handoff
	if held := c.engine.names.try(c.waiter, &claim); held != nil {
		c.heldHere(held)
		c.backoff.unanswered()
		return nil, nil //nolint:nilnil // documented: go on
	}
	if !c.engine.can.Block {
		claim.Fences = 0
	}
	began := time.Now()
	grant, asked, err := c.token.attempt(c.ctx, c.patience(), claim)
	now := time.Now()
	if err == nil {
		c.backoff.unanswered() // if it comes too late
		return c.granted(grant, asked)
	}
	if held, ok := errors.AsType[*driver.Held](err); ok {
		c.handoff = "" // used, over, or of no lease: it will never be good
		v := seen{held: held, at: now, answered: now, heldAt: max(1, c.engine.clock.Now())}
		c.refused, c.seen.err = true, nil
		c.seen.merge(v)
		c.tellLimit(held.Limit)
		c.engine.names.refused(c.waiter, v)
		c.backoff.heldBy(held, c.cfg.recheck(), c.engine.queuer != nil)
		return nil, nil //nolint:nilnil // documented: go on
	}
	if done, ok := errors.AsType[*driver.Duplicate](err); ok {
		refusal := &DuplicateError{c.name, done.Label}
		c.engine.names.refused(c.waiter, seen{answered: now, done: &duplicate{*refusal, c.cfg.scope}})
		if handoff := c.handoff; handoff != "" { // nobody else will come for the name
			c.engine.spawn(func() { c.engine.recall(c.ctx, c.cfg, c.name, handoff) })
		}
		return nil, refusal
	}
	if c.tooLate() {
		c.suspect()
		return nil, c.ended() // says nothing about the backend: those who watch try themselves
	}
	err = c.judge(err, now.Sub(began))
	if c.silent(err) {
		return c.degrade(err)
	}
	c.fail(err)
	if errors.Is(err, driver.ErrRefused) { // the next attempt would end the same
		return nil, err
	}
	c.backoff.unanswered()
	return nil, nil //nolint:nilnil // documented: go on
}

// patience is how long the next attempt may take. The wait budget limits it, but never to less than
// a call without a budget has.
func (c *contender) patience() time.Duration {
	bound := c.cfg.attemptTimeout()
	if c.cfg.wait == WaitForever {
		return bound
	}
	spent := time.Since(c.began)
	return min(bound, max(c.cfg.wait, bound)-spent)
}

func (c *contender) fail(err error) {
	c.seen.err = err
	v := seen{answered: c.seen.answered, err: err, heldAt: c.seen.heldAt}
	if errors.Is(err, errTooShort) { // that is about this call's time, and no news for others
		v.err = nil
	}
	c.engine.names.refused(c.waiter, v)
}

// granted makes a lease of a grant that answers an attempt. If the grant is already nearly over, or nobody wants it any
// more, it is given back.
func (c *contender) granted(g driver.Grant, asked clock.Reading) (*Lease, error) {
	ttl := c.cfg.ttl
	if g.TTL > 0 {
		ttl = min(ttl, g.TTL)
	}
	if trust(ttl)-c.engine.clock.Read().Since(asked) < ttl/3 {
		c.refuse(c.token)
		c.token, c.offered = nil, offer{}
		c.fail(&unavailableError{"acquire", c.name, errLate})
		return nil, nil //nolint:nilnil // documented by try: go on
	}
	c.tellLimit(g.Limit)
	return c.begin(newTenure(c.token, c.cfg, g, ttl, asked))
}

// grantedInLine makes a lease of a grant that came while the contender waited, by a call that
// began at asked. The backend keeps the name for as long as it would have kept the place. A
// renewal is due at once if waiters behind need it, because turns begin after the first one. Otherwise it
// waits until short work is over.
func (c *contender) grantedInLine(g driver.Grant, asked clock.Reading) (*Lease, error) {
	ttl, now := driver.PlaceLife(c.cfg.ttl), c.engine.clock.Read()
	if trust(ttl)-now.Since(asked) < ttl/3 {
		return nil, nil //nolint:nilnil // documented by pause: the next attempt finds its own token, and gets a full TTL
	}
	t := newTenure(c.token, c.cfg, g, c.cfg.ttl, asked.Earlier(trust(c.cfg.ttl)-trust(ttl)))
	t.unproven, t.renewAt = true, now.Awake()
	if g.Fences <= 1 {
		t.renewAt = now.Awake().Add(maxTurns)
	}
	return c.begin(t)
}

// begin makes a lease of the contender's own tenure.
func (c *contender) begin(t *tenure) (*Lease, error) {
	now := c.engine.clock.Read()
	if c.cfg.maxHold > 0 {
		t.holdEnd = now.Awake().Add(c.cfg.maxHold)
	}
	c.token, c.offered = nil, offer{} // the tenure's from here on
	x := c.waiter.lease
	if x == nil {
		x = newLease(c.ctx, c.cfg, c.name)
	}
	x.bind(t, 0, now)
	t.first, t.leases = x, x
	if held := c.engine.names.granted(c.waiter, t); held != nil {
		c.refuse(t.token)
		c.heldHere(held)
		return nil, nil //nolint:nilnil // documented by try: go on
	}
	if !c.engine.watchdog.add(t) {
		c.giveBack(x)
		return nil, ErrClosed
	}
	if c.ctx.Err() != nil {
		c.giveBack(x)
		return nil, c.ended()
	}
	return x, nil
}

// refuse gives back what a token was granted. The next attempt waits for that, except if the
// caller's wait is over.
func (c *contender) refuse(b *token) {
	given := make(chan struct{})
	c.engine.spawn(func() {
		defer close(given)
		b.giveBack(c.ctx)
	})
	select {
	case <-given:
	case <-c.waiting().Done():
	}
}
