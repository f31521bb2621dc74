package core_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// Commands that arrive late, and answers that nobody hears.

// freeWithin fails the test unless the name is free by then.
func (b *bench) freeWithin(d time.Duration, name string) {
	b.Helper()
	other := b.other()
	for end := time.Now().Add(d); ; time.Sleep(10 * time.Millisecond) {
		x, err := other.TryAcquire(b.Context(), name)
		if err == nil {
			b.ok(x.Release(b.Context()))
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%q after %s: %v", name, d, err)
		}
	}
}

func TestAClaimThatArrivesAfterItsCleanUpIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{time.Millisecond, ttl / 2, 9 * ttl / 10} {
		for what, leave := range map[string]func(context.CancelFunc){
			"by its deadline": func(context.CancelFunc) {},
			"by hand":         func(cancel context.CancelFunc) { time.AfterFunc(ttl/20, cancel) },
		} {
			t.Run(fmt.Sprintf("%s, %s late", what, late), func(t *testing.T) {
				t.Parallel()
				virtual(t, func(b *bench) {
					b.link.Next(lab.OpAcquire, lab.RequestLate)
					ctx, cancel := context.WithTimeout(b.Context(), ttl/10)
					defer cancel()
					leave(cancel)
					b.is(second(b.locks.Acquire(ctx, "name")), core.ErrUnavailable, ctx.Err())
					time.Sleep(late) // what was sent to clean up is answered meanwhile
					if n := b.link.Deliver(); n != 1 {
						b.Fatalf("%d late commands", n)
					}
					b.freeWithin(5*time.Second, "name")
				})
			})
		}
	}
}

func TestADuplicateThatArrivesAfterTheReleaseIsGivenBack(t *testing.T) {
	t.Parallel()
	each(t, map[string]lab.Fate{"its reply is lost": lab.RequestLate, "its client hears of it": lab.HeldBack}, func(b *bench, fate lab.Fate) {
		b.link.Next(lab.OpAcquire, fate)
		x := b.acquire(b.locks, "name") // by its second command
		b.ok(x.Release(b.Context()))
		b.link.Deliver() // the first one takes the name with a token that is over
		b.freeWithin(5*time.Second, "name")
	})
}

func TestAnAbandonedGrantIsGivenBackAtOnce(t *testing.T) {
	t.Parallel()
	each(t, map[string]lab.Fate{"it was executed": lab.ReplyHeldBack, "it is executed later": lab.HeldBack}, func(b *bench, fate lab.Fate) {
		b.link.Next(lab.OpAcquire, fate) // a client that does not look at ctx
		ctx := b.in(ttl / 10)
		b.took(ttl/10, time.Millisecond, func() {
			b.is(second(b.locks.Acquire(ctx, "name")), context.DeadlineExceeded, core.ErrUnavailable)
		})
		if fate == lab.HeldBack {
			b.link.Deliver()
		}
		b.freeWithin(10*time.Millisecond, "name")
	})
}

func TestCleanUpNeverTouchesATokenInUse(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Next(lab.OpAcquire, lab.HeldBack)
		x := b.acquire(b.locks, "name")
		b.link.Deliver() // the duplicate arrives while its token is in use
		time.Sleep(ttl / 2)
		b.ok(x.Err())
		b.sent(0, lab.OpRelease)
		b.ok(x.Release(b.Context()))
		b.freeWithin(0, "name")
	})
}

func TestCallersWhoLeaveAtAnyInstantLeaveNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(2*time.Millisecond, 3*time.Millisecond)
		var wg sync.WaitGroup
		const callers = 100
		name := func(i int) string { return fmt.Sprintf("name-%d", i) }
		for i := range callers {
			wg.Go(func() {
				ctx := b.in(time.Duration(i) * 100 * time.Microsecond)
				x, err := b.locks.Acquire(ctx, name(i))
				if err == nil {
					b.ok(x.Release(b.Context()))
				}
			})
		}
		wg.Wait()
		for i := range callers {
			b.freeWithin(time.Second, name(i))
		}
	})
}

func TestFailedRenewalsAreRetriedUntilTrustEnds(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.link.Next(lab.OpRenew, lab.ReplyReset, lab.Refused, lab.ReplyReset, lab.Refused, lab.ReplyReset, lab.Refused)
		time.Sleep(2 * ttl)
		b.ok(x.Err())
		b.link.All(lab.Refused, lab.OpRenew)
		renewed := x.ValidUntil()
		<-x.Context().Done()
		if now := time.Now(); now.Before(renewed) || now.After(renewed.Add(time.Millisecond)) {
			b.Errorf("ended at %s, trusted until %s", now, renewed)
		}
		b.reason(x, core.ReasonUnreachable)
	})
}

func TestAReleaseSurvivesADeadContext(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		b.ok(x.Release(ctx))
		b.freeWithin(0, "name")
	})
}

// A backend that mints fences, and has granted without an answer, does not grant the same fence again.
func TestARetryAfterAnUnknownOutcomeGetsALaterFence(t *testing.T) {
	t.Parallel()
	for _, fate := range []lab.Fate{lab.ReplyLost, lab.ReplyReset} {
		virtual(t, func(b *bench) {
			before, err := b.store.Acquire(b.Context(), driver.Claim{Name: "name", Token: "before", TTL: ttl})
			b.ok(err)
			b.ok(b.store.Release(b.Context(), driver.Claim{Name: "name", Token: "before", TTL: ttl}))
			b.link.Next(lab.OpAcquire, fate)
			x := b.acquire(b.locks, "name")
			if x.Fence() <= before.Fence {
				b.Errorf("fence %d after %d", x.Fence(), before.Fence)
			}
			b.ok(x.Release(b.Context()))
		})
	}
}
