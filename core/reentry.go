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
		if x.engine == r && x.want.Name == name && x.live() {
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
	if !x.root.cfg.covers(a.cfg) {
		return nil, errOtherKind
	}
	root := x.root
	inner := newLease(a.ctx, a.engine, a.cfg, a.name)
	inner.root, inner.more, inner.open = root, &more{inside: x}, 0
	inner.hold, inner.fence, inner.since = root.hold, root.fence, a.engine.clock.Read().Up()
	if err := a.takeSlot(inner); err != nil {
		return nil, err
	}
	root.mu.Lock()
	if root.loss != nil || x.ended || root.freed {
		root.mu.Unlock()
		inner.leaveSlot()
		return nil, nil //nolint:nilnil // documented: the caller goes on to a real acquire
	}
	defer root.mu.Unlock()
	inner.shut = root.shut
	inner.more.next, root.rare().inners = root.seen().inners, inner
	root.open++
	return inner, nil
}

var errOtherKind = invalidf("the name is re-entered, and its lease is neither exclusive nor of the same kind: WithShared, WithLimit")

// takeSlot waits for the slot of the lease that inner re-enters. A shared lease has no slot, because
// siblings are readers too.
func (a *acquisition) takeSlot(inner *Lease) error {
	root := inner.root
	if root.cfg.shared {
		return nil
	}
	root.mu.Lock()
	x := inner.more.inside.rare()
	if x.slot == nil {
		x.slot = make(chan struct{}, 1)
	}
	slot := x.slot
	root.mu.Unlock()
	inner.more.turn = slot
	select {
	case slot <- struct{}{}:
		return nil
	default:
	}
	a.heldAt = a.engine.clock.Now()
	a.held = &driver.Held{Label: root.cfg.label, Remaining: root.hold.Remaining(a.heldAt)}
	if a.once() {
		return a.overBudget()
	}
	return a.waitForSlot(slot)
}

func (a *acquisition) waitForSlot(slot chan<- struct{}) error {
	a.beginWait()
	var budget <-chan time.Time
	if a.cfg.wait != WaitForever {
		timer := time.NewTimer(a.cfg.wait - a.waitedFor())
		defer timer.Stop()
		budget = timer.C
	}
	long, end := a.untilLong()
	defer end()
	drain := a.engine.accept.Done()
	var outer <-chan struct{}
	for {
		select {
		case slot <- struct{}{}:
			return nil
		case <-long:
			a.Long()
		case <-budget:
			return a.overBudget()
		case <-a.ctx.Done():
			return a.ended()
		case <-a.engine.life.Done():
			return ErrClosed
		case <-drain:
			if outer, drain = a.under(), nil; outer == nil {
				return a.why(ErrDraining)
			}
		case <-outer:
			if outer = a.under(); outer == nil {
				return a.why(ErrDraining)
			}
		}
	}
}

// leaveSlot lets the next sibling in, if x has a slot.
func (x *Lease) leaveSlot() {
	if x.root == x || x.more.turn == nil {
		return
	}
	<-x.more.turn
	x.root.mu.Lock()
	defer x.root.mu.Unlock()
	for p := &x.root.more.inners; *p != nil; p = &(*p).more.next {
		if *p == x {
			*p = x.more.next
			return
		}
	}
}
