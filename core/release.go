package core

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// release gives a tenure back. It waits for the commands that are still under way, and then sends
// one owner-checked command. It sends that again while the outcome is unknown and the tenure still
// stands. The tenure is tenureEnding before all of this, so no new command gets under way.
type release struct {
	tenure *tenure
	open   bool // a command of this release may have acted already
}

// release begins the release of the tenure whose last lease is x. x is told the result. The first
// command goes out on the caller's goroutine if nothing can delay it there. Everything else happens
// on a goroutine that outlives ctx.
func (t *tenure) release(ctx context.Context, x *Lease, idle bool) (known bool, err error) {
	r := release{tenure: t}
	if t.local || idle && ctx.Err() == nil && t.engine.inline(ctx) {
		returned := false
		defer func() {
			if !returned { // the backend's client has panicked
				r.open = true
				r.apart(ctx, x)
			}
		}()
		known, err := r.first(ctx)
		returned = true
		if known {
			x.settle(err)
			return true, err
		}
	}
	r.apart(ctx, x)
	return false, nil
}

// apart is a method of its own because the variables of a goroutine's function are allocated.
// Inside release that would happen at the start of every call.
func (r release) apart(ctx context.Context, x *Lease) {
	r.tenure.engine.spawn(func() { x.settle(r.run(context.WithoutCancel(ctx))) })
}

// first sends one command, under the deadline of ctx. If its outcome is not known, run does the
// rest.
func (r *release) first(ctx context.Context) (known bool, err error) {
	t := r.tenure
	if t.local {
		return true, t.released(nil)
	}
	t.token.to(tokenEnding)
	patience := t.engine.patience(ctx, t.cfg.attemptTimeout())
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, max(grace, time.Until(deadline)))
	}
	bounded, cancel := t.engine.calls.Get(context.WithoutCancel(ctx), patience)
	defer cancel()
	err = r.send(bounded)
	if failed(err) {
		r.open = outcomeOpen(err)
		return false, nil
	}
	return true, r.over(err)
}

// run releases the tenure, and returns once the result is known.
func (r release) run(ctx context.Context) error {
	t := r.tenure
	t.awaitIdle()
	t.token.to(tokenEnding)
	bound := t.cfg.attemptTimeout()
	return r.over(t.engine.persist(ctx, bound/2, bound, failed, func(ctx context.Context) error {
		err := r.send(ctx)
		r.open = r.open || outcomeOpen(err)
		return err
	}))
}

func (r *release) send(ctx context.Context) error {
	t := r.tenure
	asked := t.engine.clock.Read()
	if asked.Since(t.asked) >= t.life {
		return errOver
	}
	claim := t.token.claim()
	claim.Mark = t.done
	claim.Keep = t.rest(asked)
	if t.handed != nil {
		claim.Keep, claim.Handoff = t.handed.keep, t.handed.handoff
	}
	err := t.token.release(ctx, claim)
	t.engine.latency.heard(asked, t.engine.clock.Read(), !outcomeOpen(err))
	t.engine.outage.heard(err)
	return err
}

// over ends the tenure with the answer to its release. The answer can be "not the owner" because an
// earlier command of the same release, whose answer was lost, has freed the name. That is assumed
// if there was such a command, and if nobody else can have had the name since.
func (r *release) over(err error) error {
	t := r.tenure
	switch {
	case err == nil:
		return t.released(nil)
	case errors.Is(err, driver.ErrNotOwner) && r.open && t.stands():
		return t.released(nil)
	case errors.Is(err, driver.ErrNotOwner) && !r.open:
		return t.released(&LostError{t.token.name, ReasonTaken})
	case errors.Is(err, errOver) && !r.open:
		return t.released(&LostError{t.token.name, ReasonExpired})
	case errors.Is(err, driver.ErrUnmarked):
		return t.released(&unavailableError{"complete", t.token.name, err})
	default:
		return t.released(&unavailableError{"release", t.token.name, opaque(err)})
	}
}

// released ends the tenure with the result of its release.
func (t *tenure) released(err error) error {
	held := t.engine.clock.Read().Up().Sub(t.first.since)
	t.mu.Lock()
	t.state = tenureReleased
	told := t.loss != nil // before, by MaxHold
	lost, isLost := errors.AsType[*LostError](err)
	if isLost && !told {
		t.loss = lost
	}
	t.mu.Unlock()
	if err == nil {
		t.token.confirm()
	}
	t.engine.enter() // Close also waits until observers are told
	defer t.engine.leave()
	t.vacate()
	switch {
	case t.engine.events == nil || told: // a lease ends only once, so that counts stay right
	case err == nil:
		t.engine.events.add(t.engine, ReleasedEvent{t.subject(), held, t.done, t.handed != nil, t.local})
	case !isLost:
		t.engine.events.add(t.engine, UnconfirmedEvent{t.subject(), held, err})
	default:
		t.engine.events.add(t.engine, LostEvent{t.subject(), lost.Reason, held})
	}
	if told {
		return t.loss
	}
	return err
}
