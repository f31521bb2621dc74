package core

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// release gives the tenure back: renewal has stopped, what is still under way is awaited,
// and then one owner-checked release goes out, again while its outcome is unknown and the
// tenure still stands. The caller has set tenureEnding. Open says that a command of this
// release may have acted already.
func (t *tenure) release(ctx context.Context, open bool) error {
	t.quiesce()
	t.token.to(tokenEnding)
	err := t.engine.persist(ctx, t.token.cfg.attemptTimeout()/2, t.token.cfg.attemptTimeout(), failed, func(ctx context.Context) error {
		err := t.sendRelease(ctx)
		open = open || outcomeOpen(err)
		return err
	})
	return t.released(t.releaseOutcome(err, open))
}

// releaseNow is release on the caller's goroutine, and under its deadline: one command. If
// its outcome is not known, the rest is for release.
func (t *tenure) releaseNow(ctx context.Context) (settled, open bool, err error) {
	if t.local {
		return true, false, t.released(nil)
	}
	t.token.to(tokenEnding)
	patience := t.engine.patience(ctx, t.token.cfg.attemptTimeout())
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, max(grace, time.Until(deadline)))
	}
	bounded, cancel := t.engine.calls.Get(context.WithoutCancel(ctx), patience)
	defer cancel()
	err = t.sendRelease(bounded)
	if failed(err) {
		return false, outcomeOpen(err), err
	}
	return true, false, t.released(t.releaseOutcome(err, false))
}

func (t *tenure) sendRelease(ctx context.Context) error {
	asked := t.engine.clock.Read()
	if asked.Since(t.asked) >= t.life {
		return errOver
	}
	claim := t.token.claim()
	claim.Mark = t.done
	claim.Keep = t.rest(asked)
	if t.handed != nil {
		claim.Keep, claim.Handoff, claim.Fence = t.handed.keep, t.handed.handoff, t.fenceOf(t.turn)
	}
	err := t.token.release(ctx, claim)
	t.engine.latency.heard(asked, t.engine.clock.Read(), !outcomeOpen(err))
	t.engine.outage.heard(err)
	return err
}

var errOver = errors.New("the tenure ended before its release was answered")

// failed says whether a release is worth sending again.
func failed(err error) bool {
	return err != nil && !errors.Is(err, driver.ErrNotOwner) && !errors.Is(err, driver.ErrUnmarked) && !errors.Is(err, errOver)
}

// quiesce waits for the commands under way, which all have a bound of their own.
func (t *tenure) quiesce() {
	t.mu.Lock()
	if t.flying == 0 {
		t.mu.Unlock()
		return
	}
	if t.landed == nil {
		t.landed = make(chan struct{})
	}
	landed := t.landed
	t.mu.Unlock()
	<-landed
}

func (t *tenure) stands() bool { return t.engine.clock.Read().Since(t.asked) < t.life }

// releaseOutcome reads the answer to a release. "Not ours" means that an earlier command of the
// same release has freed it, if there was one whose answer was lost, and as long as nobody
// else could have had the name since.
func (t *tenure) releaseOutcome(err error, open bool) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrNotOwner) && open && t.stands():
		return nil
	case errors.Is(err, driver.ErrNotOwner) && !open:
		return &LostError{t.token.name, ReasonTaken}
	case errors.Is(err, errOver) && !open:
		return &LostError{t.token.name, ReasonExpired}
	case errors.Is(err, driver.ErrUnmarked):
		return &unavailableError{"complete", t.token.name, err}
	default:
		return &unavailableError{"release", t.token.name, opaque(err)}
	}
}

// released ends the tenure with what its release came to.
func (t *tenure) released(err error) error {
	held := t.engine.clock.Read().Up().Sub(t.first.since)
	t.mu.Lock()
	t.state = tenureReleased
	told := t.loss != nil // by MaxHold, before
	lost, isLost := errors.AsType[*LostError](err)
	if isLost && !told {
		t.loss = lost
	}
	t.mu.Unlock()
	if err == nil {
		t.token.confirm()
	}
	t.engine.enter() // Close waits until it is told, too
	defer t.engine.leave()
	t.vacate()
	switch {
	case t.engine.events == nil || told: // a lease ends once, for those who count
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
