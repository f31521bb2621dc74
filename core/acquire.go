package core

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// acquisition is one call that wants a lease.
type acquisition struct {
	root    *root
	ctx     context.Context
	name    string
	cfg     *config
	maxHold time.Duration

	began    time.Time
	answered time.Time // when the backend last answered; until it does, when the call began
	known    error     // a *HeldError, once something said that the name is held
	failed   error     // matches ErrUnavailable: what the last attempt came to
	waited   bool
	told     bool    // that another limit counts
	bid      *bid    // the token that is being tried, nil if there is none
	old      *tenure // of this process, to yield in the same step
}

// acquire gets a lease, or says why not.
func (l *Locker) acquire(ctx context.Context, name string, c *config, maxHold time.Duration) (*Lease, error) {
	r := l.root
	r.enter()
	defer r.leave()
	if err := r.checkName(name); err != nil {
		return nil, err
	}
	now := time.Now()
	a := &acquisition{root: r, ctx: ctx, name: name, cfg: c, maxHold: maxHold, began: now, answered: now}
	x, err := a.run()
	if r.events != nil {
		a.report(x, err)
	}
	return x, err
}

func (r *root) checkName(name string) error {
	if limit := r.can.MaxName; limit > 0 && len(name) > limit {
		return invalidf("name: %d bytes, and the %s backend takes %d", len(name), r.can.Backend, limit)
	}
	return checkName(name)
}

func (a *acquisition) run() (*Lease, error) {
	if a.root.closed() {
		return nil, ErrClosed
	}
	if a.ctx.Err() != nil {
		return nil, a.ended()
	}
	if a.cfg.reentry {
		if outer := a.root.outer(a.ctx, a.name); outer != nil {
			if x, err := a.reenter(outer); x != nil || err != nil {
				return x, err
			}
		}
	}
	if a.once() {
		return a.single()
	}
	return a.queue()
}

// once says that the call makes one attempt and waits for no holder.
func (a *acquisition) once() bool { return a.cfg.wait == 0 }

// single makes one attempt, unless this process knows the answer already or is about to.
func (a *acquisition) single() (*Lease, error) {
	w := &waiter{cfg: a.cfg, maxHold: a.maxHold}
	if a.cfg.together() {
		x, err := a.alone(w)
		if x == nil && err == nil {
			err = a.overBudget()
		}
		a.giveUp(w, err)
		return x, err
	}
	for {
		joined, known, watch := a.root.lines.joinAlone(a.name, w)
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
		if err := a.beside(known); err != nil {
			return nil, err
		}
	}
}

// watch waits for the outcome of somebody else's attempt.
func (a *acquisition) watch(outcome <-chan verdict) (v verdict, err error) {
	timer := time.NewTimer(a.cfg.bound())
	defer timer.Stop()
	select {
	case v = <-outcome:
		return v, nil
	case <-timer.C:
		return v, &unavailableError{"acquire", a.name, errNoAnswer}
	case <-a.ctx.Done():
		return v, a.ended()
	case <-a.root.closing:
		return v, ErrClosed
	}
}

// beside is what the outcome of somebody else's attempt means for this call: nil means
// that it has to ask for itself.
func (a *acquisition) beside(v verdict) error {
	switch {
	case v.held != nil:
		a.learn(v)
		return a.known
	case v.done != nil && a.cfg.dedup > 0 && v.scope == a.cfg.scope:
		return v.done
	default:
		return v.err
	}
}

// learn takes over what somebody else's attempt said.
func (a *acquisition) learn(v verdict) {
	if v.held != nil {
		a.known = a.held(v.held, time.Since(v.at))
	}
	if v.err != nil {
		a.failed = v.err
	}
	if v.answered.After(a.answered) {
		a.answered = v.answered
	}
}

// queue waits in this process's line, until it is given a turn of a tenure, or it is the
// contender and has asked the backend until there is a lease or a reason to stop.
func (a *acquisition) queue() (*Lease, error) {
	w := &waiter{cfg: a.cfg, maxHold: a.maxHold, lease: newLease(a.ctx, a.cfg, a.name)}
	if a.cfg.together() && !a.root.lines.wanted(a.cfg.line(a.name)) {
		if x, err := a.alone(w); x != nil || err != nil {
			a.giveUp(w, err)
			return x, err
		}
	}
	x, err := a.stand(w)
	if x == nil && err == nil {
		x, err = a.contend(w)
	}
	a.giveUp(w, err)
	return x, err
}

// alone makes one attempt beside the line, for a lease that leaves the name to others: a
// process's readers do not have to ask one after the other. It overtakes nobody, as the
// backend refuses it while anybody stands in line there.
func (a *acquisition) alone(w *waiter) (*Lease, error) {
	a.root.lines.joinNone(w)
	x, err := a.try(w, &pace{acquisition: a, waiter: w})
	if x == nil {
		a.root.lines.leave(w)
	}
	return x, err
}

// giveUp ends the call's part in the line and its token, after an error.
func (a *acquisition) giveUp(w *waiter, err error) {
	if err == nil {
		return
	}
	unheard, empty := a.root.lines.leave(w)
	if unheard.lease != nil {
		a.giveBack(unheard.lease)
	}
	a.giveUpOld(unheard.old)
	a.giveUpOld(a.old)
	if a.bid == nil && empty != nil {
		a.bid = newBid(a.root, a.name, a.cfg)
	}
	if a.bid != nil {
		a.bid.giveUp(a.ctx, empty)
	}
}

// giveUpOld releases a tenure that this call should have yielded.
func (a *acquisition) giveUpOld(t *tenure) {
	if t != nil {
		ctx := context.WithoutCancel(a.ctx)
		a.root.spawn(func() { _ = t.release(ctx, false) }) // told to observer and log
	}
}

// stand waits until w is the contender, or has a lease.
func (a *acquisition) stand(w *waiter) (*Lease, error) {
	if a.root.lines.join(a.name, w) {
		return nil, nil //nolint:nilnil // documented: the contender
	}
	a.waited = true
	over, stop := a.budget()
	defer stop()
	select {
	case c := <-w.up:
		return a.calledUp(w, c)
	case <-over:
		a.learn(a.root.lines.known(w))
		return a.standOver(w)
	case <-a.ctx.Done():
		a.learn(a.root.lines.known(w))
		return nil, a.ended()
	case <-a.root.closing:
		return nil, ErrClosed
	}
}

func (a *acquisition) calledUp(w *waiter, c summons) (*Lease, error) {
	a.old = c.old
	if c.lease == nil {
		a.learn(a.root.lines.known(w))
	}
	var err error
	switch {
	case a.root.closed():
		err = ErrClosed
	case a.ctx.Err() != nil:
		err = a.ended()
	default:
		return c.lease, nil // without one it is the contender
	}
	if c.lease != nil {
		a.giveBack(c.lease)
	}
	return nil, err
}

// standOver is the end of the budget of one who stands in line. If the line knows nothing
// yet, the answer is that of the attempt under way, as it is for those who do not wait.
func (a *acquisition) standOver(w *waiter) (*Lease, error) {
	timer := time.NewTimer(a.cfg.bound())
	defer timer.Stop()
	for a.known == nil && a.failed == nil {
		select {
		case v := <-a.root.lines.watch(w):
			if err := a.beside(v); err != nil {
				return nil, err
			}
		case c := <-w.up:
			return a.calledUp(w, c)
		case <-timer.C:
			return nil, &unavailableError{"acquire", a.name, errNoAnswer}
		case <-a.ctx.Done():
			return nil, a.ended()
		case <-a.root.closing:
			return nil, ErrClosed
		}
	}
	return nil, a.overBudget()
}

// contend is the contender's loop.
func (a *acquisition) contend(w *waiter) (*Lease, error) {
	p := pace{acquisition: a, waiter: w}
	for {
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
		return nil, a.failed
	}
	if a.bid == nil {
		a.bid = newBid(a.root, a.name, a.cfg)
	}
	claim := a.bid.claim
	a.root.lines.try(w, &claim)
	if !a.root.can.Block {
		claim.Fences = 0
	}
	grant, asked, err := a.ask(w, claim)
	now := time.Now()
	if err == nil {
		p.unanswered() // if it comes too late
		return a.granted(w, grant, asked)
	}
	if held, ok := errors.AsType[*driver.Held](err); ok {
		a.answered = now
		a.failed = nil
		a.known = a.held(held, 0)
		a.limited(held.Limit)
		a.root.lines.refused(w, verdict{at: now, answered: now, held: held})
		p.heldBy(held)
		return nil, nil //nolint:nilnil // documented: go on
	}
	if done, ok := errors.AsType[*driver.Done](err); ok {
		refusal := &DoneError{a.name, done.Label}
		a.root.lines.refused(w, verdict{at: now, answered: now, done: refusal, scope: a.cfg.scope})
		return nil, refusal
	}
	if a.ctx.Err() != nil {
		return nil, a.ended() // says nothing about the backend: those who watch try themselves
	}
	a.fail(w, err)
	p.unanswered()
	return nil, nil //nolint:nilnil // documented: go on
}

// patience is how long the next attempt may take. A budget cuts it, but never below what a
// call without a budget has.
func (a *acquisition) patience() time.Duration {
	bound := a.cfg.bound()
	if a.cfg.wait == WaitForever {
		return bound
	}
	spent := time.Since(a.began)
	return min(bound, max(a.cfg.wait, bound)-spent)
}

func (a *acquisition) fail(w *waiter, err error) {
	a.failed = &unavailableError{"acquire", a.name, opaque(err)}
	a.root.lines.refused(w, verdict{at: time.Now(), answered: a.answered, err: a.failed})
}

// granted makes a lease of a grant, unless that is nearly over already, or nobody wants it
// any more: then it is given back.
func (a *acquisition) granted(w *waiter, g driver.Grant, asked instant) (*Lease, error) {
	ttl := a.cfg.ttl
	if g.TTL > 0 {
		ttl = min(ttl, g.TTL)
	}
	life, now := trust(ttl), a.root.clock.read()
	if life-now.since(asked) < ttl/3 {
		a.bid.giveBack(a.ctx)
		a.bid = nil
		a.fail(w, errLate)
		return nil, nil //nolint:nilnil // documented by try: go on
	}
	a.limited(g.Limit)
	t := newTenure(a.bid, a.cfg, g, ttl, asked)
	t.granted = now
	if a.maxHold > 0 {
		t.holdEnd = now.awake + a.maxHold
	}
	a.bid = nil // the tenure's from here on
	x := w.lease
	if x == nil {
		x = newLease(a.ctx, a.cfg, a.name)
	}
	x.bind(t, 0, now)
	t.first[0] = x
	t.leases = t.first[:]
	a.root.lines.granted(w, t)
	if !a.root.keeper.add(t) {
		a.giveBack(x)
		return nil, ErrClosed
	}
	if a.ctx.Err() != nil {
		a.giveBack(x)
		return nil, a.ended()
	}
	return x, nil
}

// giveBack ends a lease whose caller has gone. Observers see it come and go: its end is told
// to those who count.
func (a *acquisition) giveBack(x *Lease) {
	x.tenure.forgo()
	if a.root.events != nil {
		a.acquired(x, a.cfg.subject(a.ctx, a.name))
	}
	_ = x.end(a.ctx, false) // told to observer and log
}

// budget returns a channel that fires when the wait budget is over.
func (a *acquisition) budget() (over <-chan time.Time, stop func()) {
	if a.cfg.wait == WaitForever {
		return nil, func() {}
	}
	timer := time.NewTimer(a.cfg.wait - time.Since(a.began))
	return timer.C, func() { timer.Stop() }
}

// overBudget is the error for the end of the wait budget.
func (a *acquisition) overBudget() error {
	switch {
	case a.known != nil && a.failed == nil, a.known != nil && !a.once():
		return a.known
	case a.failed != nil:
		return a.failed
	default:
		return &unavailableError{"acquire", a.name, errNotAsked}
	}
}

// ended is the error for the end of the caller's ctx.
func (a *acquisition) ended() error {
	known := a.known
	if known == nil {
		known = a.failed
	}
	if known == nil {
		known = &unavailableError{"acquire", a.name, errNotAsked}
	}
	return &endedError{a.ctx.Err(), known}
}

// held makes the error for a name of which the backend said so a while ago.
func (a *acquisition) held(h *driver.Held, ago time.Duration) error {
	after := h.Remaining - ago
	switch {
	case h.Exact:
	case after <= 0:
		after = jitter(time.Second)
	default:
		after = jitter(min(after, time.Second))
	}
	return &HeldError{Name: a.name, Label: h.Label, RetryAfter: max(after, time.Millisecond)}
}

// limited tells observers, once, that n counts instead of the caller's limit.
func (a *acquisition) limited(n int) {
	if n > 0 && !a.told && a.root.events != nil {
		a.told = true
		a.root.events.add(a.root, LimitedEvent{a.cfg.subject(a.ctx, a.name), a.cfg.limit, n})
	}
}

func (a *acquisition) report(x *Lease, err error) {
	subject := a.cfg.subject(a.ctx, a.name)
	took := subject.At.Sub(a.began)
	add := func(event any) { a.root.events.add(a.root, event) }
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
	a.root.events.add(a.root, AcquiredEvent{subject, subject.At.Sub(a.began), x.fence, x.inside != nil})
}
