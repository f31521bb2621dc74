package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// ancestors are the leases that a lease was made under.
type ancestors struct {
	outer *Lease // the innermost lease of the caller's context
	root  *Lease // the outermost lease that it has re-entered; nil if it has re-entered none
}

// outer is the innermost lease of the caller's context, or nil.
func (x *Lease) outer() *Lease {
	if x.above == nil {
		return nil
	}
	return x.above.outer
}

// root is the outermost lease that it has re-entered; itself if it has re-entered none.
func (x *Lease) root() *Lease {
	if x.above == nil || x.above.root == nil {
		return x
	}
	return x.above.root
}

// outer returns the live lease of the given name that ctx stands under, if it is of the same
// engine, or nil.
func (r *engine) outer(ctx context.Context, name string) *Lease {
	x := leaseOf(ctx)
	for ; x != nil; x = x.outer() {
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
	if a.cfg.Dedup > 0 {
		return nil, invalidf("WithDedup: the name is re-entered, and only the outermost lease can complete")
	}
	if !x.root().cfg.covers(a.cfg) {
		return nil, errOtherKind
	}
	root := x.root()
	inner := newLease(a.ctx, a.engine, a.cfg, a.name)
	inner.above.root, inner.more = root, &more{inside: x}
	inner.hold, inner.fence, inner.since = root.hold, root.fence, a.engine.clock.Read().Up()
	if err := a.takeSlot(inner); err != nil {
		return nil, err
	}
	root.mu.Lock()
	defer root.mu.Unlock()
	if root.loss != nil || x.ended {
		inner.leaveSlot()
		return nil, nil //nolint:nilnil // documented: the caller looks again
	}
	inner.shut = root.shut
	inner.more.next, root.rare().inners = root.seen().inners, inner
	x.rare().within++
	return inner, nil
}

var errOtherKind = invalidf("the name is re-entered, and its lease is neither exclusive nor of the same kind: WithShared, WithLimit")

// takeSlot waits for the slot of the lease that inner re-enters. A shared lease has no slot, because
// siblings are readers too.
func (a *acquisition) takeSlot(inner *Lease) error {
	root := inner.root()
	if root.cfg.Limit == driver.Readers {
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
	a.held = root.hold.Held(a.heldAt)
	if a.budget == 0 {
		return a.overBudget()
	}
	return a.waitForSlot(slot)
}

func (a *acquisition) waitForSlot(slot chan<- struct{}) error {
	a.beginWait()
	budget := time.NewTimer(a.budget - a.waitedFor())
	defer budget.Stop()
	long := time.NewTimer(a.longAt().Sub(a.engine.clock.Now()))
	defer long.Stop()
	drain := a.engine.accept.Done()
	for {
		if err := a.Gone(); err != nil {
			return a.why(err)
		}
		select {
		case slot <- struct{}{}:
			return nil
		case <-long.C:
			a.Long()
		case <-budget.C:
			return a.overBudget()
		case <-a.ctx.Done():
		case <-a.engine.life.Done():
		case <-drain:
			drain = nil
		case <-a.Until():
		}
	}
}

// open says whether x, or anything that has re-entered it, goes on. The caller holds the mutex.
func (x *Lease) open() bool { return !x.out || x.seen().within > 0 }

// shutDown says that x has ended. With it end all those around it that were waiting for that: a lease that has re-entered another one
// lets no sibling in before everything inside of it has ended. It says whether the root is one of them. The caller holds the mutex.
func (x *Lease) shutDown() (root bool) {
	for x.out = true; !x.open(); x = x.more.inside {
		if x.root() == x {
			return true
		}
		x.leaveSlot()
		x.more.inside.more.within--
	}
	return false
}

// leaveSlot lets the next sibling in, if x has a slot, and forgets x. The caller holds the mutex.
func (x *Lease) leaveSlot() {
	if x.more.turn != nil {
		<-x.more.turn // never blocks: it is full as long as x has it
	}
	for p := &x.root().rare().inners; *p != nil; p = &(*p).more.next {
		if *p == x {
			*p = x.more.next
			return
		}
	}
}
