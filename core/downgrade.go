package core

import (
	"context"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Downgrade makes an exclusive lease a shared one, in one step: readers, by [WithShared], may come in
// beside it, and no writer has had the name in between. The work goes on under the same lease and the
// same contexts. Use it where work writes first and then only reads for long.
//
// Call it when all that you write is written. From the call on, the lease counts as shared, even if Downgrade returns
// [ErrUnavailable]. It keeps its fence, and readers that come in have no smaller one. There is
// no way back: to write again, release the lease and acquire the name.
//
// Downgrade waits for the answer, for at most a fifth of the TTL and 2 s. For a lease that is shared already
// it returns nil. The errors are:
//
//   - [ErrInvalid] for a lease of [WithLimit] or [WithMinHold], for a lease that has re-entered another
//     one or is re-entered, and if the backend has no shared leases. Then the lease stays exclusive;
//   - ctx's error if ctx had ended before. Then the lease stays exclusive, too;
//   - [ErrUnavailable] if there was no answer: readers may be in or not. The lease stands, and its
//     renewals go on trying. Call Downgrade again to wait for that, as you have to [WithoutRenewal]. For a lease
//     that is [Lease.Degraded], nothing changes;
//   - a *[LostError] or [ErrReleased] if the lease is over.
func (x *Lease) Downgrade(ctx context.Context) error {
	if err := x.downgradable(); err != nil {
		return err
	}
	if err := x.Err(); err != nil {
		return err
	}
	t := x.tenure
	if t.cfg.shared {
		return nil
	}
	if t.local {
		return &unavailableError{"downgrade", x.name, errDegraded}
	}
	if ctx.Err() != nil {
		return &endedError{ctx.Err(), &unavailableError{"downgrade", x.name, errNotAsked}}
	}
	reader, err := t.downgrade(ctx, x)
	if err != nil || reader {
		return err
	}
	switch err := x.Err(); {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return &endedError{ctx.Err(), &unavailableError{"downgrade", x.name, errNoAnswer}}
	default:
		return &unavailableError{"downgrade", x.name, errNoAnswer}
	}
}

// downgradable checks what never changes during a lease.
func (x *Lease) downgradable() error {
	if x.none() {
		return errNoLease
	}
	switch c := x.tenure.cfg; {
	case x.inside != nil:
		return invalidf("Downgrade of %q: the lease has re-entered another one, which is to be downgraded", x.name)
	case c.limit > 1:
		return invalidf("Downgrade of %q: not with WithLimit", x.name)
	case c.minHold > 0:
		return invalidf("Downgrade of %q: not with WithMinHold, which keeps the name from others", x.name)
	case !x.tenure.engine.can.Shared:
		return lacks(x.tenure.engine.can, "Downgrade")
	default:
		return nil
	}
}

// downgrade has the backend make the tenure a shared owner, and says whether it has. From now on the
// renewals of the tenure ask for that, so each of them makes good for one that was lost.
//
// The interleavings behind it:
//
//  1. A renewal of an exclusive claim is under way. If a shared one overtook it, it would find that its
//     token is not the owner, and end the lease. So the claims change only when nothing else is under way:
//     see asReader. A renewal that nobody waits for any more may still come, but nobody looks at its answer.
//  2. The watchdog renews while our command is under way. Its claim is a shared one, too: whichever comes
//     first makes the owner a reader, and the other one extends it.
//  3. The answer is lost. The tenure is alone in the tables of names until a renewal is answered, so
//     the others of this process wait for that. The release frees either kind of owner.
//  4. An acquire of ours was sent twice, and the first one comes now. It asks for the name alone. The
//     token is a reader, so no driver takes it for the owner.
//  5. A sibling waits to re-enter, and gets the slot now. It looks at the kind again, under the mutex.
//  6. The turn ends. The next goroutine of this process wants the name alone, so sound refuses.
func (t *tenure) downgrade(ctx context.Context, x *Lease) (reader bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(t.cfg.renewTimeout(), t.left()))
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	for sent := false; ; {
		switch {
		case t.reader || t.state != tenureHeld || x.ended:
			return t.reader, nil
		case !t.toReader.Load() && (t.leases != x || x.next != nil): // afterwards only readers re-enter
			return false, invalidf("Downgrade of %q: it is re-entered, and what is inside has not ended", x.name)
		}
		t.toReader.Store(true)
		if ctx.Err() != nil || sent && t.inFlight == 0 || t.engine.watchdog.hasLeft() { // as in renewNow
			return false, nil
		}
		if t.inFlight == 0 {
			sent = true
			t.token.downgraded.Store(true) // at once: the watchdog may count a command of its own before ours has its claim
			t.inFlight++
			asked := t.engine.clock.Read() // under the mutex, as in renewNow
			t.engine.spawn(func() { t.sendRenewal(asked) })
		}
		quiet := t.quiet.wait()
		t.mu.Unlock()
		waitFor(ctx, quiet)
		t.mu.Lock()
	}
}

// asReader makes c the claim of a reader if the tenure is to become one, and nothing of its time as a
// writer is under way any more: also if Downgrade could not wait for that. The caller holds the mutex, and
// has counted its own command.
func (t *tenure) asReader(c *driver.Claim) {
	if t.toReader.Load() && t.inFlight == 1 {
		t.token.downgraded.Store(true)
	}
	if t.token.downgraded.Load() {
		c.Shared, c.Downgraded, c.Fence = true, true, t.fenceOf(t.turn)
	}
}

// shared says that the work has the name together with other readers, or lets them in.
func (t *tenure) shared() bool { return t.cfg.shared || t.toReader.Load() }

// covers is config.covers for a lease that may have been downgraded.
func (t *tenure) covers(d *config) bool {
	if t.toReader.Load() {
		return d.shared
	}
	return t.cfg.covers(d)
}
