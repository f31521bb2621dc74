package core

import "context"

// Confirm says whether the work that runs under ctx may begin a side effect now. Call it right
// before the side effect, with the work's own context. It returns nil if at least a third of the
// TTL is left.
//
// If more than half of the TTL is left, Confirm does no I/O. With the default watchdog and a
// backend that answers, that is always so. Otherwise Confirm renews the lease once. It waits for
// the answer for at most a fifth of the TTL and 2 s, and it first waits for a renewal that is
// already under way. If less than a third of the TTL is left after that, it returns a *[LostError];
// without an answer, what is left of the old trust counts. Such a refusal ends nothing: the lease may
// recover, and the work should return the error.
//
// All leases that ctx stands under count, not only the innermost one, except outer leases that were
// given back. Confirm returns the *[LostError] of a lost lease, also after [WithMaxHold]. If the
// innermost lease has ended by its own release, it returns [ErrReleased]. Without a lease it
// returns [ErrInvalid]. If ctx has ended, or ends while Confirm waits, it returns
// context.Cause(ctx), which is [ErrClosed] once the Locker is closed. Work that must finish all the
// same calls Confirm with context.WithoutCancel(ctx).
//
// Confirm renews a lease [WithoutRenewal] too, and nothing else does. So work that makes progress
// keeps its lease, and work that hangs does not.
//
// Confirm makes the window smaller in which a paused holder writes late. Only a fence closes it,
// because the pause can come between Confirm and the write: see [Lease.Fence] and package fence.
func Confirm(ctx context.Context) error {
	x := leaseOf(ctx)
	if x == nil {
		return invalidf("Confirm: the context stands under no lease")
	}
	if lost := x.Err(); lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	free := true
	for y := x; y != nil; y = y.around() {
		if left, _ := y.hold.Left(y.engine.clock.Read()); left <= y.root().cfg.TTL/2 {
			free = false
			if !y.engine.abandoned.Load() {
				y.hold.Refresh(ctx, y.engine.room.Port, y.root().cfg.TTL/2)
			}
		}
	}
	if free {
		return nil
	}
	for y := x; y != nil; y = y.around() { // they were renewed one after the other, so all are judged at the end
		if err := y.confirmed(ctx); err != nil {
			return err
		}
	}
	return nil
}

// around is the next outer lease that has not been given back. Code can outlive the work of an
// outer lease, as code under [Lease.Context] may. Such code does not depend on that lease any more.
func (x *Lease) around() *Lease {
	y := x.outer()
	for y != nil && y.gone() {
		y = y.outer()
	}
	return y
}

// confirmed judges what is left of the lease now. It looks for a loss before it looks at ctx,
// because the loss may be why ctx has ended. It looks for too little trust after that, because the
// end of ctx may have cut the wait short.
func (x *Lease) confirmed(ctx context.Context) error {
	if lost := x.Err(); lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if left, _ := x.hold.Left(x.engine.clock.Read()); left < x.root().cfg.TTL/3 {
		return &LostError{x.want.Name, ReasonUnreachable}
	}
	return nil
}
