package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
)

// readersOnly fails the test unless another process may read now, and not write.
func (b *bench) readersOnly() {
	b.Helper()
	other := b.other()
	b.is(second(other.TryAcquire(b.Context(), "name")), core.ErrHeld)
	b.ok(b.reader(other, "name").Release(b.Context()))
}

// stillAlone fails the test if another process may read now.
func (b *bench) stillAlone() {
	b.Helper()
	b.is(second(b.other().TryAcquire(b.Context(), "name", core.WithShared())), core.ErrHeld)
}

func TestADowngradedWriterLetsInWhoWaitsToRead(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		work, fence := x.Context(), x.Fence()
		here, there := b.call(b.locks, core.WithShared()), b.call(b.other(), core.WithShared())
		b.took(0, 0, func() { b.ok(x.Downgrade(b.Context())) })
		readers := []*core.Lease{here.granted(), there.granted()}
		writer := b.call(b.locks)
		b.ok(x.Downgrade(b.Context())) // it is a reader already
		time.Sleep(5 * ttl)            // all are renewed
		for _, r := range readers {
			b.ok(r.Check(b.Context()))
			if r.Fence() != fence { // of memory, all readers have that of the first
				b.Errorf("a reader's fence is %d, beside %d", r.Fence(), fence)
			}
		}
		b.ok(work.Err())
		b.ok(x.Check(b.Context()))
		if x.Fence() != fence {
			b.Errorf("fence %d became %d", fence, x.Fence())
		}
		own := b.locks.Own("name")[0].Process.Leases
		if len(own) != 2 || own[0].Kind != core.HoldShared {
			b.Errorf("own leases: %+v", own)
		}
		b.ok(x.Release(b.Context()))
		if writer.ended() {
			b.Error("a writer beside readers")
		}
		for _, r := range readers {
			b.ok(r.Release(b.Context()))
		}
		b.eventually("the writer", writer.ended)
		if w := writer.granted(); w.Fence() <= readers[0].Fence() {
			b.Errorf("a writer's fence is %d, after %d", w.Fence(), readers[0].Fence())
		}
		b.ok(writer.granted().Release(b.Context()))
		b.free()
	})
}

func TestADowngradeIsOneCommand(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		sent := b.commands()
		b.ok(x.Downgrade(b.Context()))
		if n := b.commands() - sent; n != 1 {
			b.Errorf("%d commands", n)
		}
		b.ok(x.Release(b.Context()))
	})
}

func TestADowngradeThatWasNotAnsweredIsMadeGoodByTheNextRenewal(t *testing.T) {
	t.Parallel()
	for _, fate := range []drivertest.Fate{
		drivertest.Refused, drivertest.RequestLost, drivertest.RequestLate, drivertest.ReplyLost, drivertest.ReplyReset,
	} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name")
			b.link.Next(drivertest.OpRenew, fate)
			b.is(x.Downgrade(b.Context()), core.ErrUnavailable)
			b.ok(x.Err())
			reader := b.call(b.locks, core.WithShared())
			b.eventually("a reader", reader.ended)
			b.link.Deliver()
			b.readersOnly()
			b.ok(x.Downgrade(b.Context()))
			b.ok(x.Check(b.Context()))
			b.ok(x.Release(b.Context()))
			b.ok(reader.granted().Release(b.Context()))
			b.free()
		})
	}
}

// Without a watchdog, only another call asks again. The release frees whatever the backend has made of it.
func TestADowngradeWithoutRenewalIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for _, fate := range []drivertest.Fate{drivertest.RequestLost, drivertest.ReplyLost} {
		for _, again := range []bool{false, true} {
			virtual(t, func(b *bench) {
				x := b.acquire(b.locks, "name", core.WithoutRenewal())
				b.link.Next(drivertest.OpRenew, fate)
				b.is(x.Downgrade(b.Context()), core.ErrUnavailable)
				if again {
					b.ok(x.Downgrade(b.Context()))
					b.readersOnly()
				}
				b.ok(x.Release(b.Context()))
				b.free()
			})
		}
	}
}

func TestADowngradeWaitsForTheRenewalUnderWay(t *testing.T) {
	t.Parallel()
	for _, fate := range []drivertest.Fate{drivertest.Delivered, drivertest.RequestLost, drivertest.ReplyLost} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name")
			b.link.Delay(ttl/50, ttl/50)
			b.link.Next(drivertest.OpRenew, fate)
			b.eventually("a renewal", func() bool { return b.link.Calls(drivertest.OpRenew) > 0 })
			err := x.Downgrade(b.Context())
			b.ok(x.Err())
			if fate == drivertest.Delivered {
				b.ok(err)
			}
			b.eventually("the downgrade", func() bool { return x.Downgrade(b.Context()) == nil })
			b.readersOnly()
			b.ok(x.Release(b.Context()))
			b.free()
		})
	}
}

// An exclusive renewal that was given up is executed after the downgrade. Its owner is a reader by then.
func TestARenewalThatComesLateAfterADowngradeChangesNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.link.Next(drivertest.OpRenew, drivertest.RequestLate)
		b.eventually("a renewal that is given up, and another one", func() bool { return b.link.Calls(drivertest.OpRenew) > 1 })
		b.ok(x.Downgrade(b.Context()))
		reader := b.reader(b.other(), "name")
		b.link.Deliver()
		synctest.Wait()
		b.ok(x.Check(b.Context()))
		b.ok(reader.Check(b.Context()))
		b.ok(x.Release(b.Context()))
		b.ok(reader.Release(b.Context()))
		b.free()
	})
}

// Confirm has sent an exclusive renewal, and the watchdog comes due. If its renewal asked for a reader, the other
// one would find that its token is no owner.
func TestNoRenewalUnderWayIsOvertakenByADowngrade(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.halfSpent()
		b.link.Next(drivertest.OpRenew, drivertest.HeldBack)
		go func() { _ = core.Confirm(x.Context()) }() // its answer is looked at below
		synctest.Wait()
		sent := b.link.Calls(drivertest.OpRenew)
		soon, cancel := context.WithTimeout(b.Context(), time.Millisecond)
		defer cancel()
		b.is(x.Downgrade(soon), core.ErrUnavailable)
		b.eventually("the watchdog's", func() bool { return b.link.Calls(drivertest.OpRenew) > sent })
		b.link.Deliver()
		synctest.Wait()
		b.ok(x.Err())
		b.ok(x.Downgrade(b.Context()))
		b.readersOnly()
		b.ok(x.Release(b.Context()))
	})
}

func TestAReaderGivesNoTurnToAWriter(t *testing.T) {
	t.Parallel()
	for _, heard := range []bool{true, false} {
		virtual(t, func(b *bench) {
			x, waiting := b.queue(2)
			if !heard {
				b.link.Next(drivertest.OpRenew, drivertest.ReplyReset)
			}
			if err := x.Downgrade(b.Context()); (err == nil) != heard {
				b.Errorf("%v", err)
			}
			token := x.Token()
			b.ok(x.Release(b.Context()))
			b.eventually("the writer", waiting[0].ended)
			if writer := waiting[0].granted(); writer.Token() == token || writer.Fence() <= x.Fence() {
				b.Errorf("fence %d after %d, the same token %v", writer.Fence(), x.Fence(), writer.Token() == token)
			}
			b.ok(waiting[0].lease.Release(b.Context()))
			b.free()
		})
	}
}

// The first renewal of a grant in line is under way, and shows no fence, so that turns may follow. A caller that
// does not wait for it has asked to be a reader all the same.
func TestNoTurnFollowsADowngradeThatWasNotSentYet(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		first, next := b.call(b.locks), b.call(b.locks)
		time.Sleep(driver.Recheck(ttl)) // as in served
		b.link.Delay(time.Millisecond, time.Millisecond)
		b.ok(holder.Release(b.Context()))
		b.eventually("a renewal", func() bool { return b.link.Calls(drivertest.OpRenew) > 0 })
		x := first.granted()
		soon, cancel := context.WithTimeout(b.Context(), time.Millisecond/2)
		defer cancel()
		b.is(x.Downgrade(soon), context.DeadlineExceeded, core.ErrUnavailable)
		token := x.Token()
		b.ok(x.Release(b.Context()))
		b.eventually("the next one", next.ended)
		if next.granted().Token() == token {
			b.Error("a turn of what was to become a reader")
		}
		b.ok(next.lease.Release(b.Context()))
	})
}

func TestAWriterThatWaitsHereStandsInTheQueueAfterADowngrade(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		writer, other := b.call(b.locks), b.other()
		b.ok(x.Downgrade(b.Context()))
		synctest.Wait()
		b.is(second(other.TryAcquire(b.Context(), "name", core.WithShared())), core.ErrHeld)
		b.ok(x.Release(b.Context()))
		b.ok(writer.granted().Release(b.Context()))
		b.free()
	})
}

func TestADowngradedLeaseIsReenteredByReadersTogether(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.ok(x.Downgrade(b.Context()))
		b.is(second(b.locks.TryAcquire(x.Context(), "name")), core.ErrInvalid)
		var met sync.WaitGroup
		met.Add(2)
		both := make(chan struct{})
		go func() { met.Wait(); close(both) }()
		for range 2 {
			go func() {
				b.is(b.locks.Do(x.Context(), "name", func(context.Context) error {
					met.Done()
					<-both
					return nil
				}, core.WithShared()), nil)
			}()
		}
		<-both
		synctest.Wait()
		b.ok(x.Release(b.Context()))
		b.free()
	})
}

// A sibling waits for its turn inside an exclusive lease. When its turn comes, the lease is downgraded: either
// the sibling is in before, or it is told.
func TestAWriterIsNotInsideOfAReader(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]core.Option{nil, {core.WithShared()}} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name")
			inner, err := b.locks.Acquire(x.Context(), "name")
			b.ok(err)
			sibling := b.callWith(x.Context(), b.locks, opts...)
			b.ok(inner.Release(b.Context()))
			lowered := x.Downgrade(b.Context())
			b.eventually("the sibling's answer", sibling.ended)
			switch {
			case lowered != nil:
				b.is(lowered, core.ErrInvalid)
				b.ok(sibling.err)
			case opts == nil:
				b.is(sibling.err, core.ErrInvalid)
			default:
				b.ok(sibling.err)
			}
			if sibling.err == nil {
				b.ok(sibling.lease.Release(b.Context()))
			}
			b.ok(x.Release(b.Context()))
			b.free()
		})
	}
}

func TestWhatCannotBeDowngradedStaysAsItIs(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for what, opt := range map[string]core.Option{"limit": core.WithLimit(2), "min-hold": core.WithMinHold(time.Second)} {
			x := b.acquire(b.locks, what, opt)
			b.is(x.Downgrade(b.Context()), core.ErrInvalid)
			b.is(second(b.other().TryAcquire(b.Context(), what, core.WithShared())), core.ErrHeld)
			b.ok(x.Release(b.Context()))
		}
		x := b.acquire(b.locks, "name")
		inner, err := b.locks.Acquire(x.Context(), "name")
		b.ok(err)
		b.is(inner.Downgrade(b.Context()), core.ErrInvalid)
		b.is(x.Downgrade(b.Context()), core.ErrInvalid)
		b.ok(inner.Release(b.Context()))
		over, cancel := context.WithCancel(b.Context())
		cancel()
		b.is(x.Downgrade(over), context.Canceled, core.ErrUnavailable)
		b.stillAlone()
		b.ok(x.Release(b.Context()))
		b.is(x.Downgrade(b.Context()), core.ErrReleased)
		b.is((*core.Lease)(nil).Downgrade(b.Context()), core.ErrInvalid)

		reader := b.reader(b.locks, "name")
		b.ok(reader.Downgrade(b.Context()))
		b.ok(reader.Release(b.Context()))
		lost := b.acquire(b.locks, "name")
		b.store.Lose("name")
		b.is(lost.Downgrade(b.Context()), core.ErrLost)
		b.reason(lost, core.ReasonTaken)
		b.ok(b.acquire(b.locks, "name").Release(b.Context()))
	})
}

func TestADegradedLeaseIsNotDowngraded(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.All(drivertest.Refused)
		x := b.acquire(b.localOnly(), "name")
		b.is(x.Downgrade(b.Context()), core.ErrUnavailable)
		b.ok(x.Err())
		b.ok(x.Release(b.Context()))
	})
}

func TestABackendWithoutReadersCannotDowngrade(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		plain, err := core.New(lacking{b.link, func(can *driver.Capabilities) { can.Shared = false }})
		b.ok(err)
		x := b.acquire(plain, "name")
		b.is(x.Downgrade(b.Context()), core.ErrInvalid)
		b.stillAlone()
		b.ok(x.Release(b.Context()))
		b.ok(plain.Close(b.Context()))
	})
}

func TestADowngradedLeaseIsNotDetachedAndCanBeCompleted(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithDedup(time.Hour))
		b.ok(x.Downgrade(b.Context()))
		b.is(second(x.Detach(b.Context(), keep)), core.ErrInvalid)
		b.ok(x.Complete(b.Context()))
		b.is(second(b.other().TryAcquire(b.Context(), "name", core.WithDedup(time.Hour))), core.ErrDuplicate)
	})
}

// A cut-off holder of a downgraded name is told, as any other.
func TestADowngradedLeaseThatIsNotRenewedIsLost(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.link.All(drivertest.RequestLost)
		b.is(x.Downgrade(b.Context()), core.ErrUnavailable)
		<-x.Context().Done()
		b.reason(x, core.ReasonUnreachable)
		if lost, ok := errors.AsType[*core.LostError](x.Downgrade(b.Context())); !ok || lost.Reason != core.ReasonUnreachable {
			b.Errorf("%v", lost)
		}
		b.link.All(drivertest.Delivered)
		b.eventually("a writer", b.call(b.other()).ended)
	})
}

// Here is interleaving 5, with a reader that re-enters.
func TestAReaderInsideDoesNotUndoADowngrade(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.link.Delay(ttl/50, ttl/50)
		b.eventually("a renewal under way", func() bool { return b.link.Calls(drivertest.OpRenew) > 0 })
		lowered := make(chan error, 1)
		go func() { lowered <- x.Downgrade(b.Context()) }()
		synctest.Wait()
		inner, err := b.locks.TryAcquire(x.Context(), "name", core.WithShared())
		b.ok(err)
		b.ok(<-lowered)
		b.link.Delay(0, 0)
		b.readersOnly()
		b.ok(inner.Release(b.Context()))
		b.ok(x.Release(b.Context()))
	})
	virtual(t, func(b *bench) { // the second call, as its doc asks for
		x := b.acquire(b.locks, "name")
		b.link.Next(drivertest.OpRenew, drivertest.Refused)
		b.is(x.Downgrade(b.Context()), core.ErrUnavailable)
		inner, err := b.locks.TryAcquire(x.Context(), "name", core.WithShared())
		b.ok(err)
		b.ok(x.Downgrade(b.Context()))
		b.readersOnly()
		b.ok(inner.Release(b.Context()))
		b.ok(x.Release(b.Context()))
	})
}
