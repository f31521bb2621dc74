package core

import (
	"context"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

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
// keeps its lease, and work that hangs does not. For a degraded lease Confirm is nil, without I/O,
// until the lease ends; ask [Lease.Degraded] if that is not enough.
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
		if t := y.tenure; t.left() <= t.ttl()/2 {
			free = false
			t.renewNow(ctx)
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
	y := x.outer
	for y != nil && y.over() {
		y = y.outer
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
	if t := x.tenure; t.left() < t.ttl()/3 {
		return &LostError{x.name, ReasonUnreachable}
	}
	return nil
}

// renewNow renews once, or finds that somebody else has done so. It waits for the answer as long as
// ctx and the tenure stand.
//
// The interleavings behind it:
//
//  1. The watchdog's renewal is under way. If we sent a second one, it could be answered first. The
//     watchdog's answer, to a question that was asked earlier, would then move trust back. So we
//     wait for the watchdog's renewal, and send our own only if that has not helped.
//  2. Our renewal is under way when the watchdog comes due. The watchdog sends its own, because it
//     must not depend on anybody's Confirm. It asks later than we did. So applyAnswer does not let
//     our answer move trust back, and the watchdog's answer never does.
//  3. Many goroutines confirm at once. The first one sends. The others find something under way and
//     wait for it; mostly they then have what they want.
//  4. The release begins while our renewal is under way. It waits for what is under way, as always.
//     Our answer finds a tenure that is no longer held, and changes nothing. If the release begins
//     first, the state says so, under the same mutex, and nothing is sent.
//  5. The answer comes after the old trust has ended, and before the watchdog's timer has noticed.
//     overdue loses the tenure before the answer is looked at.
//  6. ctx ends first. The renewal goes on and counts, because no caller's ctx reaches a renewal.
//  7. Close has given up. What is in use is left to its TTL, by Confirm too.
func (t *tenure) renewNow(ctx context.Context) {
	if t.local {
		t.renewHere()
		return
	}
	if t.engine.watchdog.hasLeft() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.left())
	defer cancel()
	for first := true; ; first = false {
		t.mu.Lock()
		left := t.life - t.engine.clock.Read().Since(t.asked)
		if t.state != tenureHeld || left <= 0 || left > t.ttl()/2 {
			t.mu.Unlock()
			return
		}
		if !t.renewing && (t.inFlight == 0 || !first) {
			break
		}
		quiet := t.quiet.wait()
		t.mu.Unlock()
		if !waitFor(ctx, quiet) {
			return
		}
	}
	t.inFlight++
	asked := t.engine.clock.Read() // under the mutex: before any question that the watchdog asks from now on
	t.mu.Unlock()
	answered := make(chan struct{})
	t.engine.spawn(func() {
		defer close(answered)
		t.sendRenewal(asked)
	})
	waitFor(ctx, answered)
}

// sendRenewal sends one renewal of this tenure alone. The caller has counted it in inFlight.
func (t *tenure) sendRenewal(asked clock.Reading) {
	claim, left := t.renewClaim(t.engine.clock.Read())
	if left == 0 { // the tenure is over, or being released, since the decision to renew
		t.renewed(asked, t.engine.clock.Read(), errNotAsked, true)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(t.cfg.renewTimeout(), left))
	defer cancel()
	err := errNoAnswer
	if answers := t.engine.watchdog.renewers.send(ctx, []driver.Claim{claim}); len(answers) == 1 {
		err = answers[0]
	}
	t.renewed(asked, t.engine.clock.Read(), err, true)
}
