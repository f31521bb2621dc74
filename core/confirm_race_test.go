package core_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// confirming calls Confirm on a goroutine, and returns once it waits for an answer.
func confirming(ctx context.Context) <-chan error {
	result := make(chan error, 1)
	go func() { result <- core.Confirm(ctx) }()
	synctest.Wait()
	return result
}

func TestTheReleaseAwaitsAConfirm(t *testing.T) {
	t.Parallel()
	for _, fate := range []lab.Fate{lab.HeldBack, lab.ReplyHeldBack} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name", core.WithoutRenewal())
			ctx := context.WithoutCancel(x.Context())
			b.leave(x, ttl/2)
			b.link.Next(lab.OpRenew, fate)
			confirmed := confirming(ctx)
			released := make(chan error, 1)
			go func() { released <- x.Release(b.Context()) }()
			synctest.Wait()
			if n := b.link.Calls(lab.OpRelease); n != 0 {
				b.Error("the release went out beside the renewal")
			}
			b.link.Deliver()
			b.ok(<-released)
			b.is(<-confirmed, core.ErrReleased)
			b.is(core.Confirm(ctx), core.ErrReleased)
			b.renewed(1)
			b.ok(b.acquire(b.other(), "name").Release(b.Context()))
		})
	}
}

func TestConfirmTellsWorkWhoseLeaseWasReleasedMeanwhile(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		b.leave(x, ttl/2)
		b.link.Next(lab.OpRenew, lab.HeldBack)
		confirmed := confirming(x.Context())
		released := make(chan error, 1)
		go func() { released <- x.Release(b.Context()) }()
		b.took(0, 0, func() { b.is(<-confirmed, core.ErrReleased) })
		b.link.Deliver()
		b.ok(<-released)
	})
}

func TestConfirmWaitsForTheWatchdogsRenewalInsteadOfItsOwn(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithRenewEvery(ttl*2/3))
		b.link.Next(lab.OpRenew, lab.HeldBack)
		b.eventually("the watchdog renews", func() bool { return b.link.Calls(lab.OpRenew) == 1 })
		confirmed := confirming(x.Context())
		time.Sleep(time.Second / 2)
		b.link.Deliver()
		b.ok(<-confirmed)
		b.renewed(1)
	})
}

func TestConfirmRenewsIfTheWatchdogHasNot(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithRenewEvery(ttl*2/3))
		b.link.Next(lab.OpRenew, lab.RequestLost)
		b.eventually("the watchdog renews", func() bool { return b.link.Calls(lab.OpRenew) == 1 })
		time.Sleep(ttl / 20) // it may be early by that, and then more than half is left
		b.took(0, bound, func() { b.ok(core.Confirm(x.Context())) })
		b.renewed(2)
		if left := time.Until(x.ValidUntil()); left != ttl-drift {
			b.Errorf("%s left", left)
		}
	})
}

func TestAConfirmThatTheWatchdogOvertakesDoesNotMoveTrustBack(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.halfSpent()
		before := b.link.Calls(lab.OpRenew)
		b.link.Next(lab.OpRenew, lab.ReplyHeldBack)
		confirmed := confirming(x.Context())
		b.eventually("the watchdog renews", func() bool { return b.link.Calls(lab.OpRenew) == before+2 })
		until := x.ValidUntil()
		if time.Until(until) < ttl-drift-time.Millisecond {
			b.Fatal("the watchdog was not answered")
		}
		b.link.Deliver()
		b.ok(<-confirmed)
		if !x.ValidUntil().Equal(until) {
			b.Errorf("trust has moved by %s", x.ValidUntil().Sub(until))
		}
	})
}

func TestManyWhoConfirmAtOnceRenewOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		b.leave(x, ttl/2)
		b.link.Delay(time.Millisecond, time.Millisecond)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { b.ok(core.Confirm(x.Context())) })
		}
		all.Wait()
		b.renewed(1)
	})
}

func TestAConfirmBesideAnotherThatFailsAsksForItself(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		b.leave(x, ttl/2)
		b.link.Next(lab.OpRenew, lab.RequestLost)
		first := confirming(x.Context())
		time.Sleep(time.Second)
		b.ok(core.Confirm(x.Context()))
		if err := <-first; err != nil { // it may have gained from the second, if that was quick
			b.is(err, core.ErrLost)
		}
		b.renewed(2)
	})
}

// TestNoConfirmOutlivesItsTenure has leases confirmed from everywhere, on a network that
// loses and delays, while they are released and lost.
func TestNoConfirmOutlivesItsTenure(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		const short = 200 * time.Millisecond
		var latest atomic.Uint64 // the fence of who was confirmed
		link := lab.New(b.store)
		other := b.locker(lab.New(b.store), core.WithTTL(short))
		locks := b.locker(link, core.WithTTL(short))
		work := func(ctx context.Context) error {
			x, _ := core.FromContext(ctx)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for ctx.Err() == nil && rand.N(10) > 0 {
						time.Sleep(rand.N(short / 3))
						if core.Confirm(ctx) != nil {
							continue
						}
						if x.Err() != nil || time.Until(x.ValidUntil()) < short/3 {
							b.Error("confirmed what may not be trusted")
						}
						if latest.Swap(x.Fence()) > x.Fence() {
							b.Error("confirmed a holder after its successor")
						}
					}
				})
			}
			all.Wait()
			return nil
		}
		fates := []lab.Fate{
			lab.Delivered, lab.Delivered, lab.Delivered, lab.RequestLost,
			lab.ReplyLost, lab.ReplyReset, lab.Refused,
		}
		var all sync.WaitGroup
		for _, opts := range [][]core.Option{{core.WithoutRenewal()}, {core.WithRenewEvery(short * 2 / 3)}, {core.WithMaxHold(short)}} {
			all.Go(func() {
				for range 200 {
					link.Delay(rand.N(short/10), rand.N(short/10))
					link.Next(lab.OpRenew, fates[rand.N(len(fates))], fates[rand.N(len(fates))])
					_ = locks.Do(b.Context(), "name", work, opts...)
				}
			})
		}
		all.Go(func() {
			for range 200 {
				b.ok(other.Do(b.Context(), "name", work))
			}
		})
		all.Wait()
		link.All(lab.Delivered)
		b.ok(locks.Close(b.Context()))
		calls := link.Calls(lab.OpRenew)
		time.Sleep(10 * short)
		if n := link.Calls(lab.OpRenew) - calls; n != 0 {
			b.Errorf("%d renewals after the end", n)
		}
	})
}
