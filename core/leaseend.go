package core

import (
	"context"
	"errors"
	"time"
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
	return x.end(ctx, false)
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
	if !x.dedups() {
		return errors.Join(x.end(ctx, false), invalidf("Complete of %q: the lease has no WithDedup", x.name))
	}
	return x.end(ctx, true)
}

// Finish ends the lease as Do does when its work has returned workErr. With [WithDedup] it leaves
// the marker if workErr is nil. It returns workErr as it is, joined with a *[LostError] if the
// lease was lost. A release that could not be confirmed, or a marker that could not be left, goes
// to observer and log, not to the result.
func (x *Lease) Finish(ctx context.Context, workErr error) error {
	if x.none() {
		return errors.Join(workErr, errNoLease)
	}
	return joinLoss(workErr, x.end(context.WithoutCancel(ctx), workErr == nil && x.dedups()))
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
	if workErr == nil {
		return lost
	}
	return errors.Join(workErr, lost)
}

func (x *Lease) dedups() bool { return x.cfg.dedup > 0 && x.inside == nil }

// end ends the turn. If nobody of this process takes the next turn, the last lease of a tenure to
// end releases the tenure.
func (x *Lease) end(ctx context.Context, mark bool) error {
	if x.unlink != nil {
		defer x.unlink()
	}
	t := x.tenure
	if names := t.engine.names; names.pass(x, mark) || t.proven(ctx) && names.pass(x, mark) {
		return nil
	}
	began := time.Now()
	if release, idle := x.stop(mark); release {
		if known, err := t.release(ctx, x, idle); known {
			return err
		}
	}
	return x.await(ctx, began)
}

// stop ends the turn, if it has not ended before. It says whether the tenure is to be released, and
// whether no command is under way that carries its token.
func (x *Lease) stop(mark bool) (release, idle bool) {
	t := x.tenure
	t.mu.Lock()
	if x.ended {
		t.mu.Unlock()
		return false, false
	}
	t.done = t.done || mark
	release, idle = x.stopped(), t.inFlight == 0
	t.mu.Unlock()
	x.leaveSlot()
	return release, idle
}

// stopped ends the turn, and says whether the tenure is to be released. The caller holds the mutex.
func (x *Lease) stopped() (release bool) {
	t := x.tenure
	x.ended = true
	if x.loss == nil {
		x.until = t.validUntil()
	}
	x.endContexts(context.Canceled)
	release = t.remove(x) && (t.state == tenureHeld || t.state == tenureExpelled)
	if release {
		t.state = tenureEnding
	} else {
		x.setResult(lossOf(x))
	}
	return release
}

// lossOf is why x was lost, or nil. The caller holds the mutex.
func lossOf(x *Lease) error {
	if x.loss == nil {
		return nil
	}
	return x.loss
}

// settle makes the result of the end known.
func (x *Lease) settle(err error) {
	x.tenure.mu.Lock()
	defer x.tenure.mu.Unlock()
	x.setResult(err)
}

// setResult makes the result of the end known. The caller holds the mutex.
func (x *Lease) setResult(err error) {
	if lost, ok := errors.AsType[*LostError](err); ok {
		x.loss = lost
	}
	x.result, x.known = err, true
	x.settled.open()
}

// outcome returns the result of the end. If that is not known yet, it returns a channel that is
// closed once it is.
func (x *Lease) outcome() (settled <-chan struct{}, result error) {
	x.tenure.mu.Lock()
	defer x.tenure.mu.Unlock()
	if x.known {
		return nil, x.result
	}
	return x.settled.wait(), nil
}

// await returns the result of the end once it is known, or when ctx has ended, or when the time
// limit of a release that began at began is over.
func (x *Lease) await(ctx context.Context, began time.Time) error {
	settled, result := x.outcome()
	if settled == nil {
		return result
	}
	bound := time.NewTimer(x.tenure.cfg.attemptTimeout() - time.Since(began))
	defer bound.Stop()
	ended := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case <-settled:
			return x.result
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
	x.tenure.mu.Lock()
	defer x.tenure.mu.Unlock()
	if x.loss != nil {
		return x.loss
	}
	return &unavailableError{"release", x.name, errNoAnswer}
}
