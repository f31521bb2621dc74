package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/contend"
)

// What a call gets that gets no lease.

// why is the error of a call that has ended with err.
func (a *acquisition) why(err error) error {
	if held, ok := errors.AsType[*driver.Held](err); ok {
		a.held, a.heldAt = held, a.engine.clock.Now()
		return a.heldError()
	}
	if d, ok := errors.AsType[*driver.Duplicate](err); ok {
		return &DuplicateError{a.name, d.Label}
	}
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, contend.ErrClosed):
		return ErrClosed
	case errors.Is(err, ErrDraining):
		return a.engine.refusal("acquire", a.name)
	case a.ctx.Err() != nil:
		return &endedError{a.ctx.Err(), a.overBudget()}
	case errors.Is(err, contend.ErrBudget):
		return a.overBudget()
	case errors.Is(err, contend.ErrSilent):
		return a.unavailable(errNoAnswer)
	default:
		return a.unavailable(err)
	}
}

// overBudget is the error for the end of the wait budget: what is known by then.
func (a *acquisition) overBudget() error {
	switch {
	case a.held != nil:
		return a.heldError()
	case a.known != nil:
		return a.known
	default:
		return &unavailableError{"acquire", a.name, errNotAsked}
	}
}

// heldError is the error for a name that has a holder. It says so if that is another call of this
// process, since this call may be a part of that one's work.
func (a *acquisition) heldError() error {
	h, r := a.held, a.engine
	after := h.Remaining - r.clock.Now().Sub(a.heldAt)
	switch {
	case h.Exact:
	case after <= 0:
		after = jitter(time.Second)
	default:
		after = jitter(min(after, time.Second))
	}
	err := &HeldError{Name: a.name, Label: h.Label, RetryAfter: max(after, time.Millisecond), Exact: h.Exact}
	if a.lease == nil || r.outer(a.ctx, a.name) != nil {
		return err
	}
	if v := r.room.Table.Watch(contend.Key(&a.lease.want)); v.Held {
		turn := v.Has.Term()
		err.Here, err.HeldFor = true, r.clock.Read().Up().Sub(turn.Begun())
	}
	return err
}

// overCap refuses what would be more than the process keeps. With it, a flood of names, or of
// callers for one name that is stuck, ends in errors and not in running out of memory.
func (a *acquisition) overCap(option string, n int) error {
	return &unavailableError{"acquire", a.name, fmt.Errorf("%w: %s(%d) of this process is reached", errFull, option, n)}
}
