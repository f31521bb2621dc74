package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestAHandOverToAnotherProcessCostsItsWaiterNoCommand(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		w := b.call(b.locks)
		sent := b.commands()
		b.ok(holder.Release(b.Context()))
		x := w.granted()
		if n := b.commands() - sent; n != 0 {
			b.Errorf("%d commands", n)
		}
		b.ok(x.Release(b.Context()))
		if n := b.link.Calls(lab.OpRenew); n != 0 {
			b.Errorf("%d renewals of work that is over at once", n)
		}
		b.free()
	})
}

func TestWhatIsGrantedInLineHasItsFullTTLSoon(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		w := b.call(b.locks)
		asked := time.Now()
		time.Sleep(driver.Recheck(ttl) / 2)
		b.ok(holder.Release(b.Context()))
		x := w.granted()
		life := driver.PlaceLife(ttl)
		if until := x.ValidUntil(); until.After(asked.Add(life)) || time.Until(until) < life/3 {
			b.Errorf("trusted until %s, and offered at %s for %s", until, asked, life)
		}
		time.Sleep(life/3 + 10*time.Millisecond) // when it is renewed
		if left := time.Until(x.ValidUntil()); left < ttl*9/10 {
			b.Errorf("%s left", left)
		}
		b.ok(x.Release(b.Context()))
	})
}

func TestWhatIsGrantedInLineAndNeverRenewedEndsWithThePlace(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		w := b.call(b.locks)
		asked := time.Now()
		b.link.All(lab.RequestLost, lab.OpRenew)
		b.ok(holder.Release(b.Context()))
		x := w.granted()
		b.eventually("a loss", func() bool { return x.Err() != nil })
		if over := time.Since(asked); over > driver.PlaceLife(ttl) {
			b.Errorf("lost after %s", over)
		}
		b.reason(x, core.ReasonUnreachable)
		_ = x.Release(b.Context()) // lost
		b.eventually("the name is free", func() bool {
			y, err := b.other().TryAcquire(b.Context(), "name")
			return err == nil && y.Release(b.Context()) == nil
		})
	})
}

func TestAGrantInLineThatTheBackendDoesNotKnowIsALoss(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		w := b.call(b.locks)
		b.ok(holder.Release(b.Context()))
		x := w.granted()
		b.store.Lose("name")
		b.eventually("a loss", func() bool { return x.Err() != nil })
		b.reason(x, core.ReasonTaken)
	})
}

// The command with the offer is executed after the one that withdraws it, and nobody here has made
// another offer.
func TestAnOfferThatComesLateIsWithdrawnAgain(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		ctx, cancel := context.WithCancel(b.Context())
		b.link.Next(lab.OpWait, lab.HeldBack)
		gone := b.callWith(ctx, b.locks)
		next := b.call(b.locks)
		cancel()
		b.is(gone.failed(), context.Canceled)
		time.Sleep(100 * time.Millisecond) // the next one waits, and makes no offer yet
		b.link.Deliver()
		synctest.Wait()
		b.ok(holder.Release(b.Context()))
		b.ok(next.granted().Release(b.Context()))
		b.free()
	})
}

func TestWhoGivesUpWithdrawsItsOfferAndItsPlaceStays(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other := b.other()
		holder := b.acquire(other, "name")
		ctx, cancel := context.WithCancel(b.Context())
		gone := b.callWith(ctx, b.locks)
		next := b.call(b.locks)
		behind := b.call(b.other())
		cancel()
		b.is(gone.failed(), context.Canceled)
		synctest.Wait()
		b.ok(holder.Release(b.Context()))
		b.eventually("its turn", next.ended)
		if behind.ended() {
			b.Error("another process was first")
		}
		b.ok(next.granted().Release(b.Context()))
		b.eventually("its turn", behind.ended)
		b.ok(behind.granted().Release(b.Context()))
		b.free()
	})
}

// The command that withdraws cannot get through at first; the name is granted to who has gone.
func TestAGrantToWhoHasGoneIsGivenBack(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		ctx, cancel := context.WithCancel(b.Context())
		gone := b.callWith(ctx, b.locks)
		b.link.All(lab.Refused, lab.OpRelease)
		cancel()
		b.is(gone.failed(), context.Canceled)
		b.ok(holder.Release(b.Context()))
		b.taken(b.other(), "name")
		b.link.Heal()
		time.Sleep(time.Second) // the longest pause of a clean-up
		b.free()
	})
}
