package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestTheLastWaiterToGiveUpLeavesTheLineOfTheBackend(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		calls := []*call{b.call(b.locks), b.call(b.locks), b.call(b.locks)}
		next := b.call(b.other()) // behind them
		for _, i := range []int{0, 2, 1} {
			calls[i].cancel()
			time.Sleep(time.Second / 10)
		}
		b.took(0, 0, func() {
			b.ok(holder.Release(b.Context()))
			b.ok(next.granted().Release(b.Context()))
		})
	})
}

func TestAThousandWaitersCostThreeCommandsASecond(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		calls := make([]*call, 1000)
		for i := range calls {
			calls[i] = b.call(b.locks)
		}
		const seconds = 60
		sent := b.commands()
		for range 2 * seconds { // one heartbeat is on time for another process, too
			time.Sleep(time.Second / 2)
			b.taken(b.locks, "name")
		}
		if n := b.commands() - sent; n > 3*seconds {
			b.Errorf("%d commands in %d s", n, seconds)
		}
		b.ok(holder.Release(b.Context()))
		sent = b.commands()
		for _, w := range calls {
			b.ok(w.granted().Release(b.Context()))
		}
		if n := b.commands() - sent; n > 1000/256+3 {
			b.Errorf("%d commands for 1000 turns", n)
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

// The command with the offer is executed after the one that withdraws it, and nobody here has made
// another offer.
func TestAnOfferThatComesLateIsWithdrawnAgain(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		b.link.Next(lab.OpWait, lab.HeldBack)
		gone, next := b.call(b.locks), b.call(b.locks)
		gone.cancel()
		b.is(gone.failed(), context.Canceled)
		time.Sleep(100 * time.Millisecond) // the next one waits, and makes no offer yet
		b.link.Deliver()
		synctest.Wait()
		b.ok(holder.Release(b.Context()))
		b.ok(next.granted().Release(b.Context()))
		b.free()
	})
}

// The command that withdraws cannot get through at first; the name is granted to who has gone.
func TestAGrantToWhoHasGoneIsGivenBack(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		gone := b.call(b.locks)
		b.link.All(lab.Refused, lab.OpRelease)
		gone.cancel()
		b.is(gone.failed(), context.Canceled)
		b.ok(holder.Release(b.Context()))
		b.taken(b.other(), "name")
		b.link.Heal()
		time.Sleep(time.Second) // the longest pause of a clean-up
		b.free()
	})
}
