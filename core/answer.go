package core

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// overBudget is the error for the end of the wait budget.
func (a *acquisition) overBudget() error {
	switch {
	case a.known != nil && a.failed == nil, a.known != nil && !a.once():
		return a.known
	case a.failed != nil && a.stood && errors.Is(a.failed, errTooShort):
		return a.held(&driver.Held{}, 0) // it was held for all of the budget but what did not do for an answer
	case a.failed != nil:
		return a.failed
	default:
		return &unavailableError{"acquire", a.name, errNotAsked}
	}
}

// ended is the error for the end of the caller's ctx. Where the backend's client has seen its
// deadline a moment before the ctx did, that is given the moment.
func (a *acquisition) ended() error {
	if a.ctx.Err() == nil {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-a.ctx.Done():
		case <-timer.C:
		}
	}
	ended := a.ctx.Err()
	if ended == nil { // there are contexts that do not keep their deadlines
		ended = context.DeadlineExceeded
	}
	known := a.known
	if known == nil {
		known = a.failed
	}
	if known == nil {
		known = &unavailableError{"acquire", a.name, errNotAsked}
	}
	return &endedError{ended, known}
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
	return &HeldError{Name: a.name, Label: h.Label, RetryAfter: max(after, time.Millisecond), Exact: h.Exact}
}

// limited tells observers, once, that n counts instead of the caller's limit.
func (a *acquisition) limited(n int) {
	if n > 0 && !a.told && a.engine.events != nil {
		a.told = true
		a.engine.events.add(a.engine, LimitedEvent{a.cfg.subject(a.ctx, a.name), a.cfg.limit, n})
	}
}

func (a *acquisition) report(x *Lease, err error) {
	subject := a.cfg.subject(a.ctx, a.name)
	took := subject.At.Sub(a.began)
	add := func(event any) { a.engine.events.add(a.engine, event) }
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
	took, local := subject.At.Sub(a.began), x.tenure.local
	a.engine.events.add(a.engine, AcquiredEvent{subject, took, x.Fence(), x.inside != nil, local})
	if local && x.inside == nil {
		a.engine.events.add(a.engine, DegradedEvent{subject, took, a.failed})
	}
}
