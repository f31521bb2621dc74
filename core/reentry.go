package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// outer returns the live lease of the given name that ctx stands under, if it is of the same
// engine, or nil.
func (r *engine) outer(ctx context.Context, name string) *Lease {
	x := leaseOf(ctx)
	for ; x != nil; x = x.outer {
		if x.tenure.engine == r && x.name == name && x.live() {
			return x
		}
	}
	return nil
}

// reenter joins the lease x that the caller's context stands under. Siblings are goroutines that
// share that context. They queue for x's only slot, so they exclude each other. Code that runs
// inside the inner lease's context finds that lease, and its slot, first.
//
// The result is nil, without an error, if x has ended before its slot came free.
func (a *acquisition) reenter(x *Lease) (*Lease, error) {
	if a.cfg.dedup > 0 {
		return nil, invalidf("WithDedup: the name is re-entered, and only the outermost lease can complete")
	}
	t := x.tenure
	if !t.cfg.covers(a.cfg) {
		return nil, errOtherKind
	}
	inner := newLease(a.ctx, a.cfg, a.name)
	inner.inside = x
	if err := a.takeSlot(inner); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != tenureHeld || x.ended {
		inner.leaveSlot()
		return nil, nil //nolint:nilnil // documented: the caller goes on to a real acquire
	}
	inner.bind(t, x.turn, a.engine.clock.Read())
	inner.next, t.leases = t.leases, inner
	return inner, nil
}

var errOtherKind = invalidf("the name is re-entered, and its lease is neither exclusive nor of the same kind: WithShared, WithLimit")

// takeSlot waits for the slot of the lease that inner re-enters. A shared lease has no slot, because
// siblings are readers too.
func (a *acquisition) takeSlot(inner *Lease) error {
	x := inner.inside
	if inner.slotted = !x.tenure.shared(); !inner.slotted {
		return nil
	}
	x.tenure.mu.Lock()
	if x.slot == nil {
		x.slot = make(chan struct{}, 1)
	}
	x.tenure.mu.Unlock()
	select {
	case x.slot <- struct{}{}:
		return nil
	default:
	}
	held := &driver.Held{Label: x.tenure.cfg.label, Remaining: x.tenure.left()}
	a.seen.merge(seen{held: held, at: time.Now()})
	if a.once() {
		return a.overBudget()
	}
	a.beginWait()
	long := a.untilLong()
	for {
		select {
		case x.slot <- struct{}{}:
			return nil
		case <-long:
			a.tellLong(held)
		case <-a.waiting().Done():
			return a.why()
		}
	}
}

// leaveSlot lets the next sibling in, if x has a slot.
func (x *Lease) leaveSlot() {
	if x.slotted {
		<-x.inside.slot
	}
}
