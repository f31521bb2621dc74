package core_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestTheLastWaiterToGiveUpLeavesTheLineOfTheBackend(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		calls := []*call{b.call(b.locks), b.call(b.locks), b.call(b.locks)}
		next := b.call(b.other()) // behind them
		calls[0].cancel()
		time.Sleep(time.Second / 10)
		calls[2].cancel()
		time.Sleep(time.Second / 10)
		calls[1].cancel()
		synctest.Wait()
		b.took(0, 0, func() {
			b.ok(holder.Release(b.Context()))
			b.ok(next.granted().Release(b.Context()))
		})
	})
}

func TestAPlaceStaysWhenItsContenderGivesUp(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		gone, mine := b.call(b.locks), b.call(b.locks)
		theirs := b.call(b.other())
		gone.cancel()
		synctest.Wait()
		b.ok(holder.Release(b.Context()))
		time.Sleep(time.Millisecond) // which a successor waits before it asks
		x := mine.granted()
		if theirs.ended() {
			b.Error("two holders")
		}
		b.ok(x.Release(b.Context()))
		b.ok(theirs.granted().Release(b.Context()))
	})
}

// A contender with others behind it makes no offer, so it has none to withdraw.
func TestAPlaceStaysWhenAContenderWithoutAnOfferGivesUp(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		b.link.Delay(time.Millisecond, time.Millisecond)
		gone, mine := b.call(b.locks), b.call(b.locks) // both wait before the first one is refused
		time.Sleep(20 * time.Millisecond)
		b.link.Heal()
		theirs := b.call(b.other())
		gone.cancel()
		time.Sleep(100 * time.Millisecond)
		b.ok(holder.Release(b.Context()))
		b.eventually("its turn", mine.ended)
		if theirs.ended() {
			b.Error("another process was first")
		}
		b.ok(mine.granted().Release(b.Context()))
		b.ok(theirs.granted().Release(b.Context()))
		b.free()
	})
}

func TestAPlaceThatIsTakenTooLateIsLeftAgain(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		b.link.Next(lab.OpWait, lab.HeldBack)
		gone := b.call(b.locks)
		gone.cancel()
		time.Sleep(time.Second / 10)
		if !gone.ended() {
			b.Error("it still waits")
		}
		b.link.Deliver() // only now does it stand in line
		next := b.call(b.other())
		b.took(0, 0, func() {
			b.ok(holder.Release(b.Context()))
			b.ok(next.granted().Release(b.Context()))
			b.free()
		})
	})
}

func TestAPlaceThatIsTakenAfterTheGrantIsLeftAgain(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		b.link.Next(lab.OpWait, lab.HeldBack)
		w := b.call(b.locks)
		b.ok(holder.Release(b.Context()))
		time.Sleep(4 * time.Second) // it is given up, and tries
		x := w.granted()
		b.link.Deliver()
		synctest.Wait()
		b.ok(x.Release(b.Context()))
		b.free()
	})
}

func TestAThousandWaitersCostThreeCommandsASecond(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		calls := make([]*call, 0, 1000)
		for range cap(calls) {
			calls = append(calls, b.call(b.locks))
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

func TestTryAcquireBesideAHoldThatIsOverIsHeld(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithMaxHold(time.Second))
		w := b.call(b.locks)
		time.Sleep(2 * time.Second) // its work is deaf
		b.is(x.Err(), core.ErrLost)
		b.took(0, 0, func() {
			b.taken(b.locks, "name")
		})
		b.is(x.Release(b.Context()), core.ErrLost)
		b.ok(w.granted().Release(b.Context()))
	})
}
