package core

import (
	"context"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// Confirm says whether the work that runs under ctx may begin a side effect now. It is
// called right before one, with the work's own context, and is nil if enough of the lease
// is left for it: at least a third of the TTL.
//
// While more than half of the TTL is left, which with the default watchdog and a backend
// that answers is always, it does no I/O. Else it renews the lease, once, as the watchdog does: for a fifth
// of the TTL and at most 2 s, and if a renewal is under way already it waits for that one
// first. It then returns a *[LostError] unless a third of the TTL is left: by then without
// an answer too, as trust stands until its time is over. A refusal ends nothing: the lease
// may recover, and the work should return the error.
//
// Every lease that ctx stands under counts, not only the innermost, but for those that were
// given back. A lost one is its *[LostError]; one that has ended by its own Release is
// [ErrReleased]. If ctx has ended, or ends while Confirm waits, it returns
// context.Cause(ctx): [ErrClosed] once the Locker is closed. Work that finishes all the same
// asks with context.WithoutCancel(ctx). After the time of [WithMaxHold] the answer is a
// *[LostError] either way. Without a lease it is [ErrInvalid].
//
// A degraded lease stands until it ends: Confirm is nil, and does no I/O. Work for which that
// is not enough asks [Lease.Degraded].
//
// A lease [WithoutRenewal] is renewed by Confirm too, and by nothing else: so work that
// makes progress keeps its lease, and work that hangs does not.
//
// Confirm narrows the window in which a holder that is paused writes late. Only a fence
// closes it, since the pause can come between Confirm and the write: see [Lease.Fence] and
// package fence.
func Confirm(ctx context.Context) error {
	x, ok := FromContext(ctx)
	if !ok {
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
	for y := x; y != nil; y = y.around() { // one after the other was renewed: all are judged in the end
		if err := y.confirmed(ctx); err != nil {
			return err
		}
	}
	return nil
}

// around is the next lease further out that has not been given back: code that outlives an
// outer lease's work, as that of [Lease.Context] may, is not held to it.
func (x *Lease) around() *Lease {
	y := x.outer
	for y != nil && y.over() {
		y = y.outer
	}
	return y
}

// confirmed judges what is left of the lease now. A loss comes before the end of ctx, which
// the loss may be the reason for; too little trust comes after it, since it is the end of ctx
// that has cut the wait short.
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

// renewNow renews once, or finds that it has been done, and waits for the answer as long as
// ctx and the tenure stand.
//
// The interleavings behind it:
//
//  1. The watchdog's renewal is under way. A second one beside it could be answered first,
//     and the watchdog's answer, to a question asked earlier, would then move trust back. So
//     it is awaited, and only if that has not helped, one of our own goes out.
//  2. Our renewal is under way when the watchdog comes due. The watchdog sends its own, as it
//     must not depend on anybody's Confirm. That was asked for later than ours: applyAnswer
//     lets ours not move trust back, and the watchdog's never does.
//  3. Many goroutines confirm at once. The first one sends; the others find something under
//     way, wait for it, and mostly have what they want then.
//  4. The release begins while ours is under way: it awaits what is under way, as ever. The
//     answer finds a tenure that is no longer held, and changes nothing. The release begins
//     first: then the state says so, under the same mutex, and nothing is sent.
//  5. The answer comes after the old trust has ended, before the watchdog's timer has noticed:
//     overdue loses the tenure before the answer is looked at.
//  6. ctx ends first. The renewal goes on, as no caller's ctx reaches one, and counts.
//  7. Close has given up: what is in use is left to its TTL, by Confirm too.
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
	if left == 0 { // over, or being released, since it was decided on
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
