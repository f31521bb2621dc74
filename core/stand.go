package core

import (
	"errors"
	"time"
)

// stand waits until w is the contender, or has a lease.
func (a *acquisition) stand(w *waiter) (*Lease, error) {
	if a.engine.names.join(a.name, w) {
		return nil, nil //nolint:nilnil // documented: the contender
	}
	a.waited = true
	over, stop := a.budget()
	defer stop()
	select {
	case c := <-w.woken:
		x, err := a.calledUp(w, c)
		if x == nil && err == nil && c.pause > 0 {
			err = a.succeed(c.pause, over)
		}
		return x, err
	case <-over:
		a.learn(a.engine.names.known(w))
		return a.standOver(w)
	case <-a.ctx.Done():
		a.learn(a.engine.names.known(w))
		return nil, a.ended()
	case <-a.engine.closing:
		return nil, ErrClosed
	}
}

func (a *acquisition) calledUp(w *waiter, c wakeup) (*Lease, error) {
	a.called, a.old, a.stood = true, c.old, c.held || c.old != nil
	if c.lease == nil {
		a.learn(a.engine.names.known(w))
	}
	var err error
	switch {
	case a.engine.closed():
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

// quits says of the error of a call that its caller leaves the line before anything was heard.
func (a *acquisition) quits(err error) bool {
	_, ended := errors.AsType[*endedError](err)
	return ended || errors.Is(err, ErrHeld) && !a.once()
}

// succeed is the pause of a contender that follows one who gave up.
func (a *acquisition) succeed(pause time.Duration, over <-chan time.Time) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-over:
		if a.known == nil {
			return nil // it asks, as a call without a budget does
		}
		return a.overBudget()
	case <-a.ctx.Done():
		return a.ended()
	case <-a.engine.closing:
		return ErrClosed
	}
}

// errPassed says that the call's context ends before an answer could come: it leaves the
// attempt to whoever is next.
var errPassed = errors.New("the context ends too soon to ask")

// tooLate says of a call that was called up that its context ends before an answer could come.
func (a *acquisition) tooLate() bool {
	deadline, ok := a.ctx.Deadline()
	return ok && a.called && time.Until(deadline) < a.engine.latency.lately(a.engine.clock)
}

// outlive is the end of a call that has passed its place on.
func (a *acquisition) outlive() error {
	deadline, _ := a.ctx.Deadline()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-a.ctx.Done():
	case <-timer.C:
	case <-a.engine.closing:
		return ErrClosed
	}
	return a.ended()
}

// standOver is the end of the budget of one who stands in line. If the line knows nothing
// yet, the answer is that of the attempt under way, as it is for those who do not wait.
func (a *acquisition) standOver(w *waiter) (*Lease, error) {
	timer := time.NewTimer(a.cfg.attemptTimeout())
	defer timer.Stop()
	for a.known == nil && a.failed == nil {
		select {
		case v := <-a.engine.names.watch(w):
			if err := a.beside(v); err != nil {
				return nil, err
			}
		case c := <-w.woken:
			return a.calledUp(w, c)
		case <-timer.C:
			return nil, &unavailableError{"acquire", a.name, errNoAnswer}
		case <-a.ctx.Done():
			return nil, a.ended()
		case <-a.engine.closing:
			return nil, ErrClosed
		}
	}
	return nil, a.overBudget()
}

// watch waits for the outcome of somebody else's attempt.
func (a *acquisition) watch(outcome <-chan seen) (v seen, err error) {
	timer := time.NewTimer(a.cfg.attemptTimeout())
	defer timer.Stop()
	select {
	case v = <-outcome:
		return v, nil
	case <-timer.C:
		return v, &unavailableError{"acquire", a.name, errNoAnswer}
	case <-a.ctx.Done():
		return v, a.ended()
	case <-a.engine.closing:
		return v, ErrClosed
	}
}

// beside is what the outcome of somebody else's attempt means for this call: nil means
// that it has to ask for itself.
func (a *acquisition) beside(v seen) error {
	switch {
	case v.held != nil:
		a.learn(v)
		return a.known
	case v.done != nil && v.concerns(a.cfg):
		return v.done
	default:
		a.learn(v)
		return v.err
	}
}

// learn takes over what somebody else's attempt said.
func (a *acquisition) learn(v seen) {
	if v.held != nil {
		a.known = a.held(v.held, time.Since(v.at))
	}
	if v.err != nil {
		a.failed = v.err
	}
	a.heldAt = max(a.heldAt, v.heldAt)
	if v.answered.After(a.answered) {
		a.answered = v.answered
	}
}

// budget returns a channel that fires when the wait budget is over.
func (a *acquisition) budget() (over <-chan time.Time, stop func()) {
	if a.cfg.wait == WaitForever {
		return nil, func() {}
	}
	timer := time.NewTimer(a.cfg.wait - time.Since(a.began))
	return timer.C, func() { timer.Stop() }
}
