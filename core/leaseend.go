package core

import (
	"context"
	"errors"
	"time"
)

// grace is how long a Release waits beyond the end of its ctx, for an answer that is
// already on its way.
const grace = 40 * time.Millisecond

// Release gives the lease back and ends its context. It takes effect even if ctx has
// ended; ctx only bounds how long Release waits for the answer. So does the attempt's own
// bound, a third of the TTL and at most 2 s.
//
// It returns nil once the name is known to be free, or at once if somebody of this process
// takes it over who waited for it: then the backend is not asked, and a loss that only it
// knows of is told to observer and log alone. It returns a *[LostError] if the lease had been
// lost before, and [ErrUnavailable] if whether it took effect is not known: if it did not,
// the name comes free when its TTL ends. A second call waits for the first one and returns
// its result.
//
// The name is freed when the outermost lease and all that re-entered it have ended. Release leaves no
// dedup marker, [Lease.Complete] does.
func (x *Lease) Release(ctx context.Context) error {
	if x.none() {
		return errNoLease
	}
	return x.end(ctx, false)
}

// Complete is [Lease.Release] that also leaves the dedup marker: until the window of [WithDedup]
// is over, claims with the same name and scope get [ErrDuplicate]. Without WithDedup it
// releases and returns [ErrInvalid]. If the name was released and the marker could not be left, as
// where the server's memory is full, that is an [ErrUnavailable] that says so: the next caller
// does the work again.
func (x *Lease) Complete(ctx context.Context) error {
	if x.none() {
		return errNoLease
	}
	if !x.dedups() {
		return errors.Join(x.end(ctx, false), invalidf("Complete of %q: the lease has no WithDedup", x.name))
	}
	return x.end(ctx, true)
}

// Finish ends the lease exactly as Do does once its work has returned workErr. With
// [WithDedup] it completes if workErr is nil. It returns workErr as it
// is, joined with a *[LostError] if the lease was lost. A release that could not be
// confirmed, or a marker that could not be left, goes to observer and log, not to the result.
func (x *Lease) Finish(ctx context.Context, workErr error) error {
	if x.none() {
		return errors.Join(workErr, errNoLease)
	}
	return joinLoss(workErr, x.end(context.WithoutCancel(ctx), workErr == nil && x.dedups()))
}

// joinLoss is what work that returned workErr comes to, whose lease ended with err.
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

// end ends the turn. If nobody of this process takes the next one, the last lease of a
// tenure to end releases it.
func (x *Lease) end(ctx context.Context, mark bool) error {
	t := x.tenure
	if t.engine.names.pass(x, mark) {
		return nil
	}
	began := time.Now()
	if x.stop(mark) {
		t.release(ctx, x)
	}
	return x.await(ctx, began)
}

// stop ends the turn, if it has not ended before, and says whether the tenure is to be released.
func (x *Lease) stop(mark bool) (release bool) {
	t := x.tenure
	t.mu.Lock()
	if x.ended {
		t.mu.Unlock()
		return false
	}
	t.done = t.done || mark
	release = x.stopped()
	t.mu.Unlock()
	if x.inside != nil {
		x.inside.leaveSlot()
	}
	return release
}

// stopped is stop for a caller who holds the mutex.
func (x *Lease) stopped() (release bool) {
	t := x.tenure
	x.ended = true
	x.until = t.validUntil()
	x.endContexts(context.Canceled)
	release = t.remove(x) && (t.state == tenureHeld || t.state == tenureExpelled)
	if release {
		t.state = tenureEnding
	} else {
		x.setResult(lossOf(x))
	}
	return release
}

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

// setResult is settle for a caller who holds the mutex.
func (x *Lease) setResult(err error) {
	if lost, ok := errors.AsType[*LostError](err); ok {
		x.loss = lost
	}
	x.result, x.known = err, true
	x.settled.open()
}

// outcome returns the result of the end, or, if that is not known yet, what is closed once it is.
func (x *Lease) outcome() (settled <-chan struct{}, result error) {
	x.tenure.mu.Lock()
	defer x.tenure.mu.Unlock()
	if x.known {
		return nil, x.result
	}
	return x.settled.wait(), nil
}

// await returns the result of the end once it is known, or when ctx or the bound of a
// release that began then is over.
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

// unconfirmed is the result of an end that nobody waits for any more. A loss from before, by
// MaxHold, is one whatever becomes of the release.
func (x *Lease) unconfirmed() error {
	x.tenure.mu.Lock()
	defer x.tenure.mu.Unlock()
	if x.loss != nil {
		return x.loss
	}
	return &unavailableError{"release", x.name, errNoAnswer}
}
