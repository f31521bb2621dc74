package core

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

// grace is how long a Release waits after the end of its ctx, for an answer that is already on its
// way.
const grace = 40 * time.Millisecond

// Release gives the lease back and ends its context. It takes effect even if ctx has ended: ctx
// only limits how long Release waits for the answer. It never waits longer than a third of the TTL,
// and 2 s.
//
// Release returns nil once the name is known to be free. If another goroutine of this process waits
// for the name and takes it over, Release returns nil at once, without asking the backend. A loss
// that only the backend knows of then goes to observer and log only.
//
// It returns a *[LostError] if the lease had been lost before. It returns [ErrUnavailable] if it is
// not known whether the release took effect; if it did not, the name comes free when its TTL ends.
// A second call waits for the first one and returns its result.
//
// The name comes free when the outermost lease and all leases that re-entered it have ended.
// Release leaves no dedup marker; [Lease.Complete] does.
func (x *Lease) Release(ctx context.Context) error {
	if x.none() {
		return errNoLease
	}
	return raise(x.end(ctx, false))
}

// Complete is [Lease.Release], and it leaves the dedup marker too. Until the window of [WithDedup]
// is over, claims with the same name and scope then get [ErrDuplicate].
//
// Without WithDedup, Complete releases the lease and returns [ErrInvalid]. If the name was released
// but the marker could not be left, for example because the server's memory is full, the error is
// an [ErrUnavailable] that says so. The next caller then does the work again.
func (x *Lease) Complete(ctx context.Context) error {
	if x.none() {
		return errNoLease
	}
	if x.cfg.Dedup == 0 {
		return errors.Join(raise(x.end(ctx, false)), invalidf("Complete of %q: the lease has no WithDedup", x.want.Name))
	}
	return raise(x.end(ctx, true))
}

// Finish ends the lease as Do does when its work has returned workErr. With [WithDedup] it leaves
// the marker if workErr is nil. It returns workErr as it is, joined with a *[LostError] if the
// lease was lost. A release that could not be confirmed, or a marker that could not be left, goes
// to observer and log, not to the result.
func (x *Lease) Finish(ctx context.Context, workErr error) error {
	if x.none() {
		return errors.Join(workErr, errNoLease)
	}
	return joinLoss(workErr, raise(x.end(context.WithoutCancel(ctx), workErr == nil && x.cfg.Dedup > 0)))
}

// joinLoss is the result of work that returned workErr, and whose lease ended with err.
func joinLoss(workErr, err error) error {
	lost, ok := errors.AsType[*LostError](err)
	if !ok {
		return workErr
	}
	if known, ok := errors.AsType[*LostError](workErr); ok && *known == *lost {
		return workErr // the work has returned the cause of its context
	}
	return errors.Join(workErr, lost)
}

// end ends the lease. If nobody of this process takes the next turn, the last lease of a root to end releases the name.
func (x *Lease) end(ctx context.Context, mark bool) error {
	return x.leave(ctx, claim.Left{Mark: mark})
}

func (x *Lease) leave(ctx context.Context, left claim.Left) error {
	root, stands, now := x.root(), ctx.Err() == nil, x.engine.clock.Read()
	first, err := x.retireFor(left, now.Awake())
	switch {
	case err != nil:
		return err
	case !first:
		return x.await(ctx, now.Awake())
	}
	root.mu.Lock()
	left.Mark = root.mark
	last := x.shutDown()
	if !last {
		x.known = true
		if x.loss != nil {
			x.rare().result = x.loss
		}
		if settled := x.seen().settled; settled != nil { // somebody else ends it, too
			close(settled)
		}
	}
	err = x.seen().result
	root.mu.Unlock()
	if !last {
		return err
	}
	if stands && ctx.Err() != nil { // it was the lease's own
		beyond, cancel := x.beyond(ctx)
		defer cancel()
		ctx = beyond
	}
	x.release(ctx, left, now)
	return x.await(ctx, now.Awake())
}

// release ends the hold. Close waits until that is told: the watchdog lets go of a hold before.
func (x *Lease) release(ctx context.Context, left claim.Left, now clock.Reading) {
	x.engine.calls.Enter()
	defer x.engine.calls.Leave()
	x.engine.room.End(ctx, x.root().hold, left, now, &leaving{root: x.root(), last: x, left: left})
}

// retireFor ends x and its contexts, which comes before everything else. It says whether that has happened just now. For a hand-off,
// nothing may go on inside of x.
func (x *Lease) retireFor(left claim.Left, now clock.Awake) (first bool, err error) {
	root, until := x.root(), now.Add(x.hold.Remaining(now))
	root.mu.Lock()
	handoff := left.Handoff != ""
	switch {
	case x.ended && handoff:
		err = ErrReleased
	case x.seen().within > 0 && handoff:
		err = invalidf("Detach of %q: it is re-entered, and what is inside has not ended", x.want.Name)
	}
	if x.ended || err != nil {
		root.mu.Unlock()
		return false, err
	}
	x.ended = true
	if x.loss == nil {
		x.until = until
	}
	root.mark = root.mark || left.Mark
	ends := x.contexts(nil)
	root.mu.Unlock()
	for _, c := range ends {
		c.made.Load().unlink() // and so it ends
	}
	return true, nil
}

// leaving is the end of a hold.
type leaving struct {
	root *Lease
	last *Lease // whose end ends the root
	left claim.Left
}

// Left implements contend.Left: the result is known.
func (l *leaving) Left(o hold.Outcome, last error) {
	x := l.root
	err := l.result(o, last)
	lost, isLost := errors.AsType[*LostError](err)
	if isLost {
		x.lose(lost.Reason)
	}
	x.mu.Lock()
	told := x.loss != nil // a lease ends only once, so that counts stay right
	if told {
		err, l.last.loss = x.loss, x.loss
	}
	l.last.known = true
	result := err
	if call.Panicked(last) {
		result = last
	}
	if result != nil {
		l.last.rare().result = result
	}
	settled := l.last.seen().settled
	x.mu.Unlock()
	if !told {
		l.tell(err)
	}
	if settled != nil {
		close(settled)
	}
}

func (l *leaving) result(o hold.Outcome, last error) error {
	name := l.root.want.Name
	switch {
	case o.Loss != term.None:
		return &LostError{name, reasonOf(o.Loss)}
	case o.Result == term.Unconfirmed:
		return &unavailableError{"release", name, opaque(last)}
	case o.Unmarked:
		return &unavailableError{"complete", name, last}
	default:
		return nil
	}
}

func (l *leaving) tell(err error) {
	kind := EventReleased
	if err != nil {
		kind = EventUnconfirmed
	}
	if !l.root.engine.observes(kind) {
		return
	}
	e := l.root.event(kind)
	e.Held, e.Err = l.root.held(), err
	if err == nil {
		e.Marked, e.Detached, e.Degraded = l.left.Mark, l.left.Handoff != "", l.root.Degraded()
	}
	l.root.engine.tell(e)
}

// raise goes on with a panic of the backend's client, on the goroutine of whoever would get err.
func raise(err error) error {
	if p, ok := errors.AsType[*call.Panic](err); ok {
		panic(p.Value)
	}
	return err
}

// outcome returns the result of the end, or what is closed when it is known.
func (x *Lease) outcome() (unknown <-chan struct{}, result error) {
	x.root().mu.Lock()
	defer x.root().mu.Unlock()
	if x.known {
		return nil, x.seen().result
	}
	r := x.rare()
	if r.settled == nil {
		r.settled = make(chan struct{})
	}
	return r.settled, nil
}

// await returns the result of the end once it is known, or when ctx has ended, or when the time limit of the release is over.
func (x *Lease) await(ctx context.Context, began clock.Awake) error {
	settled, result := x.outcome()
	if settled == nil {
		return result
	}
	bound := time.NewTimer(driver.Patience(x.root().cfg.TTL) - x.engine.clock.Now().Sub(began))
	defer bound.Stop()
	ended := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case <-settled:
			_, result = x.outcome()
			return result
		case <-bound.C:
			return x.unconfirmed()
		case <-ended:
			timer := time.NewTimer(grace)
			defer timer.Stop()
			ended, late = nil, timer.C
		case <-late:
			err := x.unconfirmed()
			if errors.Is(err, ErrLost) {
				return err
			}
			return &endedError{ctx.Err(), err}
		}
	}
}

// unconfirmed is the result of an end that nobody waits for any more. If the lease was lost before,
// by MaxHold, that loss is the result, whatever becomes of the release.
func (x *Lease) unconfirmed() error {
	x.root().mu.Lock()
	defer x.root().mu.Unlock()
	if x.loss != nil {
		return x.loss
	}
	return &unavailableError{"release", x.want.Name, errNoAnswer}
}
