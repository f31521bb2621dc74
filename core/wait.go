package core

import (
	"context"
	"errors"
	"time"
)

// waits is the context of a call's waits. It ends with the caller's context, with the wait budget
// or with the Locker. Its cause says which.
//
// A wait for a turn, in memory, does not use it: making it takes 0.4 µs and six allocations, a
// third of a turn.
type waits struct {
	context.Context
	end context.CancelFunc
}

var errBudget = errors.New("the wait budget is over")

func (a *acquisition) waiting() *waits {
	if a.waits != nil {
		return a.waits
	}
	ctx, cancel := context.WithCancelCause(a.ctx)
	stop := context.AfterFunc(a.life(), func() { cancel(a.stopped()) })
	end := func() { stop(); cancel(nil) }
	if left, ok := a.budget(); ok {
		bounded, free := context.WithTimeoutCause(ctx, left, errBudget)
		ctx, end = bounded, func() { stop(); free(); cancel(nil) }
	}
	a.waits = &waits{ctx, end}
	return a.waits
}

// budget is how long the call may still wait. It is not ok if nothing limits that.
func (a *acquisition) budget() (left time.Duration, ok bool) {
	if a.once() || a.late {
		return a.cfg.attemptTimeout(), true
	}
	return a.cfg.wait - time.Since(a.began), a.cfg.wait != WaitForever
}

// stop frees what it has. A nil one has nothing.
func (w *waits) stop() {
	if w != nil {
		w.end()
	}
}

// why is the error for the end of the waits.
func (a *acquisition) why() error {
	switch cause := context.Cause(a.waits); {
	case isStopped(cause) && a.life().Err() != nil:
		return a.stopped()
	case a.ctx.Err() == nil && errors.Is(cause, errBudget):
		return a.overBudget()
	default:
		return a.ended()
	}
}

// sleep waits for d, or until the call waits no longer.
func (a *acquisition) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-a.waiting().Done():
		return a.why()
	}
}

// waitTurn waits until w is the contender, or has a lease.
func (a *acquisition) waitTurn(w *waiter) (*Lease, error) {
	if a.engine.names.join(a.name, w) {
		return nil, nil //nolint:nilnil // documented: the contender
	}
	a.beginWait()
	var over <-chan time.Time
	if left, ok := a.budget(); ok {
		timer := time.NewTimer(left)
		defer timer.Stop()
		over = timer.C
	}
	long := a.untilLong()
	for {
		select {
		case c := <-w.woken:
			x, err := a.wokenBy(w, c)
			if x == nil && err == nil && c.pause > 0 {
				a.follows = true
				err = a.succeed(c.pause)
			}
			return x, err
		case <-long:
			a.tellLong(a.engine.names.known(w).held)
		case <-over:
			a.seen.merge(a.engine.names.known(w))
			return a.lastAnswer(w)
		case <-a.ctx.Done():
			a.seen.merge(a.engine.names.known(w))
			return nil, a.ended()
		case <-a.life().Done():
			return nil, a.stopped()
		}
	}
}

// wokenBy is what a waiter does when it is woken. Without a lease and an error it is the contender.
func (a *acquisition) wokenBy(w *waiter, c wakeup) (*Lease, error) {
	a.woken, a.behind, a.others = true, c.held, c.queue
	if c.lease == nil {
		a.seen.merge(a.engine.names.known(w))
	}
	var err error
	switch {
	case a.engine.drained() && a.life().Err() != nil:
		err = a.stopped()
	case a.ctx.Err() != nil:
		err = a.ended()
	default:
		return c.lease, nil
	}
	if c.lease != nil {
		a.giveBack(c.lease)
	}
	return nil, err
}

// succeed is the pause of a contender whose predecessor has given up.
func (a *acquisition) succeed(pause time.Duration) error {
	err := a.sleep(pause)
	if err != nil && a.seen.held == nil && a.ctx.Err() == nil && !isStopped(err) {
		return nil // its budget is over, so it asks once, as a call without a budget does
	}
	return err
}

// lastAnswer is the end of the budget of a call that waits for a turn. If the queue knows nothing
// yet, the call gets the outcome of the attempt under way, as a call without a budget does.
func (a *acquisition) lastAnswer(w *waiter) (*Lease, error) {
	a.late = true
	for a.seen.held == nil && a.seen.err == nil {
		select {
		case v := <-a.engine.names.watch(w):
			if err := a.learn(v); err != nil {
				return nil, err
			}
		case c := <-w.woken:
			a.waits.stop() // as the contender it has no more time than its budget
			a.late, a.waits = false, nil
			return a.wokenBy(w, c)
		case <-a.waiting().Done():
			return nil, a.noOutcome()
		}
	}
	return nil, a.overBudget()
}

// watch waits for the outcome of somebody else's attempt.
func (a *acquisition) watch(outcome <-chan seen) (v seen, err error) {
	select {
	case v = <-outcome:
		return v, nil
	case <-a.waiting().Done():
		return v, a.noOutcome()
	}
}

// noOutcome is why, for a call that waits for somebody else's attempt.
func (a *acquisition) noOutcome() error {
	if a.seen.held == nil && a.seen.err == nil {
		a.seen.err = &unavailableError{"acquire", a.name, errNoAnswer}
	}
	return a.why()
}

// learn says what the outcome of somebody else's attempt means for this call. nil means that this
// call has to ask for itself.
func (a *acquisition) learn(v seen) error {
	if v.held == nil && v.done != nil && v.concerns(a.cfg) {
		return &v.done.DuplicateError
	}
	a.seen.merge(v)
	if v.held != nil {
		return a.heldError()
	}
	return v.err
}

// errPassed says that the call's context ends before an answer could come, so it leaves the attempt
// to the next waiter.
var errPassed = errors.New("the context ends too soon to ask")

// endsTooSoon says of a call that was woken that its context ends before an answer could come.
func (a *acquisition) endsTooSoon() bool {
	deadline, ok := a.ctx.Deadline()
	return ok && a.woken && time.Until(deadline) < a.engine.latency.lately(a.engine.clock)
}

// outlive is the end of a call that has passed its place on: it waits for the end of its context.
func (a *acquisition) outlive() error {
	deadline, _ := a.ctx.Deadline()
	if err := a.sleep(time.Until(deadline)); err != nil {
		return err
	}
	return a.ended()
}
