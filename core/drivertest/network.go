package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

// networkCases run core on the backend over a [Link] that fails. The other process, if
// there is one, has a good connection.
var networkCases = []testCase{
	{name: "ALostReplyIsNotSomebodyElse", run: func(e *env) {
		for _, fate := range []Fate{ReplyReset, ReplyLost} {
			link := NewLink(e.Driver())
			locks := e.locker(link)
			link.Next(OpAcquire, fate)
			x, err := e.try(locks, core.WithTTL(e.longTTL()))
			e.noError(err)
			if n := link.Calls(OpAcquire); n < 2 || n > 2 && !e.harness.uneven {
				e.Errorf("%d calls", n)
			}
			e.noError(x.Release(e.Context()))
			e.free()
		}
	}},
	{name: "ARetryAfterAnUnknownOutcomeGetsALaterFence", needs: fences, run: func(e *env) {
		d := e.Driver()
		link := NewLink(d)
		locks := e.locker(link)
		before, err := e.try(e.locker(d))
		e.noError(err)
		e.noError(before.Release(e.Context()))
		link.Next(OpAcquire, ReplyReset, ReplyReset)
		x, err := e.try(locks)
		e.noError(err)
		e.noError(x.Release(e.Context()))
		after, err := e.try(e.locker(d))
		e.noError(err)
		e.noError(after.Release(e.Context()))
		if before.Fence() >= x.Fence() || x.Fence() >= after.Fence() {
			e.Errorf("fences %d, %d, %d", before.Fence(), x.Fence(), after.Fence())
		}
	}},
	{name: "ALateReplyIsGivenBackAndAskedForAgain", run: func(e *env) {
		link := NewLink(e.Driver())
		locks := e.briefly(e.locker(link))
		link.Delay(0, e.ttl*8/10) // the attempts' bound is a third
		got := make(chan *core.Lease, 1)
		go func() {
			x, err := locks.Acquire(e.Context(), "name")
			if err != nil {
				e.Error(err)
			}
			got <- x
		}()
		time.Sleep(e.ttl / 2)
		link.Delay(0, 0)
		x := <-got
		if x == nil {
			return
		}
		if left := time.Until(x.ValidUntil()); left < e.ttl/4 {
			e.Errorf("granted with %s left", left)
		}
		e.noError(x.Release(e.Context()))
		e.free()
	}},
	{name: "AnAbandonedAcquireLeavesNothingBehind", run: func(e *env) {
		link := NewLink(e.Driver())
		locks := e.locker(link)
		link.Next(OpAcquire, HeldBack)
		ctx, cancel := context.WithTimeout(e.Context(), e.ttl/10)
		defer cancel()
		e.within(e.ttl/10, "the acquire", func() {
			_, err := locks.Acquire(ctx, "name", core.WithTTL(e.longTTL()))
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, core.ErrUnavailable) {
				e.Errorf("acquire: %v", err)
			}
		})
		link.Deliver() // only now does the server get it, and grants it to nobody
		e.eventuallyFree()
	}},
	{name: "AClaimThatArrivesAfterItsCleanUpIsGivenBack", run: func(e *env) {
		for _, late := range []time.Duration{e.ttl / 100, e.ttl / 2, 2 * e.ttl} {
			for _, end := range []func(context.CancelFunc, time.Duration){
				func(context.CancelFunc, time.Duration) {}, // by the deadline
				func(cancel context.CancelFunc, d time.Duration) { time.AfterFunc(d/2, cancel) },
			} {
				link := NewLink(e.Driver())
				locks := e.locker(link)
				link.Next(OpAcquire, RequestLate)
				ctx, cancel := context.WithTimeout(e.Context(), e.ttl/10)
				end(cancel, e.ttl/10)
				if _, err := locks.Acquire(ctx, "name", core.WithTTL(e.soonTTL())); !errors.Is(err, core.ErrUnavailable) {
					e.Errorf("acquire: %v", err)
				}
				cancel()
				time.Sleep(late) // what went out to clean up is answered meanwhile
				if n := link.Deliver(); n != 1 {
					e.Fatalf("%d late commands", n)
				}
				e.soonFree()
			}
		}
	}},
	{name: "ADuplicateThatArrivesAfterTheReleaseIsGivenBack", run: func(e *env) {
		link := NewLink(e.Driver())
		locks := e.locker(link)
		link.Next(OpAcquire, RequestLate)
		x, err := e.try(locks, core.WithTTL(e.soonTTL())) // by its second command
		e.noError(err)
		e.noError(x.Release(e.Context()))
		time.Sleep(e.ttl / 10)
		link.Deliver() // the first one takes the name with a token that is over
		e.soonFree()
	}},
	{name: "AnAbandonedGrantIsGivenBackAtOnce", run: func(e *env) {
		link := NewLink(e.Driver())
		locks := e.locker(link)
		link.Next(OpAcquire, ReplyHeldBack) // a client that does not look at ctx
		ctx, cancel := context.WithTimeout(e.Context(), e.ttl/10)
		defer cancel()
		if _, err := locks.Acquire(ctx, "name", core.WithTTL(e.longTTL())); !errors.Is(err, context.DeadlineExceeded) {
			e.Errorf("acquire: %v", err)
		}
		e.eventuallyFree()
		link.Deliver()
	}},
	{name: "ADelayedDuplicateDoesNotOutliveItsReply", run: func(e *env) {
		link := NewLink(e.Driver())
		locks := e.locker(link)
		link.Next(OpAcquire, HeldBack)
		x, err := e.try(locks, core.WithTTL(e.longTTL())) // by its second command
		e.noError(err)
		e.noError(x.Release(e.Context()))
		link.Deliver() // the first one takes the name with a token that is over
		e.eventuallyFree()
	}},
	{name: "CleanUpNeverTouchesATokenInUse", run: func(e *env) {
		link := NewLink(e.Driver())
		locks := e.locker(link)
		link.Next(OpAcquire, HeldBack)
		x, err := e.try(locks, core.WithTTL(e.longTTL()))
		e.noError(err)
		link.Deliver() // the duplicate arrives while its token is in use
		time.Sleep(e.ttl / 2)
		e.noError(x.Err())
		if n := link.Calls(OpRelease); n != 0 {
			e.Errorf("%d releases while the lease is held", n)
		}
		e.noError(x.Release(e.Context()))
		e.free()
	}},
	{name: "CleanUpNeverTouchesTheNextHolder", run: func(e *env) {
		link := NewLink(e.Driver())
		locks, other := e.locker(link), e.locker(e.Driver())
		link.Next(OpAcquire, HeldBack)
		ctx, cancel := context.WithTimeout(e.Context(), e.ttl/10)
		defer cancel()
		if _, err := locks.Acquire(ctx, "name"); err == nil {
			e.Fatal("granted without a reply")
		}
		x, err := e.try(other)
		e.noError(err)
		link.Deliver()
		y, err := locks.TryAcquire(e.Context(), "name")
		if !errors.Is(err, core.ErrHeld) {
			e.Errorf("second holder: %v, %v", y, err)
		}
		time.Sleep(e.ttl / 2)
		e.noError(x.Release(e.Context()))
	}},
	{name: "TheContextEndsBeforeAnotherGetsIn", run: partition},
	{name: "FailedRenewalsAreRetriedUntilTrustEnds", run: func(e *env) {
		link := NewLink(e.Driver())
		locks := e.briefly(e.locker(link))
		x, err := locks.Acquire(e.Context(), "name")
		e.noError(err)
		link.Next(OpRenew, ReplyReset, Refused, ReplyReset, Refused, ReplyReset, Refused)
		time.Sleep(2 * e.ttl)
		e.noError(x.Err())
		e.noError(x.Release(e.Context()))
	}},
	{name: "AReleaseWhoseReplyIsLostIsConfirmedByTheNext", run: func(e *env) {
		for _, fate := range []Fate{ReplyReset, ReplyLost, Refused} {
			link := NewLink(e.Driver())
			x, err := e.try(e.locker(link))
			e.noError(err)
			link.Next(OpRelease, fate)
			e.noError(x.Release(e.Context()))
			e.free()
		}
	}},
	{name: "AReleaseSurvivesADeadContext", run: func(e *env) {
		x, err := e.try(e.locker(e.Driver()))
		e.noError(err)
		err = x.Release(done())
		if !e.virtual && errors.Is(err, context.Canceled) { // the answer is awaited for a moment only
			e.eventuallyFree()
			return
		}
		e.noError(err)
		e.free()
	}},
	{name: "EveryCallReturnsInABlackHole", run: func(e *env) {
		link := NewLink(e.Driver())
		all := e.locker(link)
		locks := e.briefly(all)
		x, err := all.TryAcquire(e.Context(), "mine")
		e.noError(err)
		link.All(RequestLost)
		bound := min(e.ttl/3, 2*time.Second) + 50*time.Millisecond
		short := func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(e.Context(), e.ttl/20)
		}
		e.within(bound, "TryAcquire", func() {
			if _, err := locks.TryAcquire(e.Context(), "name"); !errors.Is(err, core.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
				e.Errorf("TryAcquire: %v", err)
			}
		})
		ctx, cancel := short()
		e.within(e.ttl/20+50*time.Millisecond, "TryAcquire with a deadline", func() {
			if _, err := locks.TryAcquire(ctx, "name"); !errors.Is(err, context.DeadlineExceeded) {
				e.Errorf("TryAcquire with a deadline: %v", err)
			}
		})
		cancel()
		ctx, cancel = short()
		defer cancel()
		e.within(e.ttl/20+50*time.Millisecond, "Release with a deadline", func() {
			if err := x.Release(ctx); !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				e.Errorf("release: %v", err)
			}
		})
		e.within(e.ttl+bound, "Acquire", func() {
			if _, err := locks.Acquire(e.Context(), "name"); !errors.Is(err, core.ErrUnavailable) {
				e.Errorf("acquire: %v", err)
			}
		})
	}},
	{name: "ARefusedDialIsUnavailableAtOnce", run: func(e *env) {
		link := NewLink(e.Driver())
		locks := e.locker(link)
		link.All(Refused)
		e.within(0, "TryAcquire", func() {
			if _, err := locks.TryAcquire(e.Context(), "name"); !errors.Is(err, core.ErrUnavailable) {
				e.Errorf("acquire: %v", err)
			}
		})
		if n := link.Calls(OpRelease); n != 0 {
			e.Errorf("%d releases of what was never sent", n)
		}
		link.All(Delivered)
		x, err := e.try(locks)
		e.noError(err)
		e.noError(x.Release(e.Context()))
	}},
	{name: "CloseReturnsWithItsContextWhereNothingAnswers", run: func(e *env) {
		if e.Through == nil {
			e.lacks("the harness has no network to break")
		}
		held, err := e.locker(e.Driver()).Acquire(e.Context(), "name", core.WithTTL(e.longTTL()))
		e.noError(err)
		for what, breaks := range map[string]func(p *faultproxy.Proxy){
			"new connections go nowhere": func(p *faultproxy.Proxy) { p.BlackHoleNew(true) },
			"nothing arrives":            func(p *faultproxy.Proxy) { p.BlackHole(true) },
		} {
			d, proxies := e.Through()
			locks := e.locker(d)
			x, err := locks.Acquire(e.Context(), "before")
			e.noError(err)
			e.noError(x.Release(e.Context()))
			for _, p := range proxies {
				breaks(p)
			}
			waited := make(chan error, 1)
			go func() {
				_, err := locks.Acquire(e.Context(), "name", core.WithTTL(e.longTTL()))
				waited <- err
			}()
			time.Sleep(e.lineUpFor())
			e.within(e.ttl/10, "Close, where "+what, func() {
				ctx, cancel := context.WithTimeout(e.Context(), e.ttl/10)
				defer cancel()
				_ = locks.Close(ctx) // it may have something left
			})
			if err := <-waited; err == nil {
				e.Errorf("%s: two holders", what)
			}
			for _, p := range proxies {
				p.Heal()
			}
		}
		e.noError(held.Release(e.Context()))
	}},
}

// partition cuts a holder off. Its context must have ended before anybody else can have
// the name.
func partition(e *env) {
	link := NewLink(e.Driver())
	other := e.locker(e.Driver())
	x, err := e.briefly(e.locker(link)).Acquire(e.Context(), "name")
	e.noError(err)
	link.All(RequestLost)
	y, err := other.Acquire(e.Context(), "name")
	e.noError(err)
	if x.Context().Err() == nil {
		e.Error("two holders: the context of the first one still stands")
	}
	e.lost(x, core.ReasonUnreachable)
	if y.Fence() != 0 && y.Fence() <= x.Fence() {
		e.Errorf("fence %d after %d", y.Fence(), x.Fence())
	}
	link.All(Delivered)
	if err := x.Release(e.Context()); !errors.Is(err, core.ErrLost) {
		e.Errorf("release of what was lost: %v", err)
	}
	e.noError(y.Release(e.Context()))
}

// free fails the case unless "name" can be had right now.
func (e *env) free() {
	e.Helper()
	d, c := e.Driver(), e.claim("name")
	e.grant(d, c)
	e.noError(d.Release(e.Context(), c))
}

// eventuallyFree waits until "name" can be had, for less than the long TTL after which it
// would come free by itself.
func (e *env) eventuallyFree() {
	e.Helper()
	e.freeWithin(e.longTTL() / 2)
}

// soonFree is eventuallyFree for what core promises to find within a second. The TTL, soonTTL, is far
// longer.
func (e *env) soonFree() {
	e.Helper()
	if e.virtual {
		e.freeWithin(time.Second)
		return
	}
	e.freeWithin(e.soonTTL() / 2)
}

func (e *env) soonTTL() time.Duration {
	return max(3*e.ttl, 3*time.Second)
}

func (e *env) freeWithin(bound time.Duration) {
	e.Helper()
	d, c := e.Driver(), e.claim("name")
	began := time.Now()
	for {
		_, err := d.Acquire(e.Context(), c)
		if err == nil {
			break
		}
		if _, held := errors.AsType[*driver.Held](err); !held {
			e.Fatal(err)
		}
		if time.Since(began) > bound {
			e.Fatal("the name is still taken")
		}
		time.Sleep(e.ttl / 100)
	}
	e.noError(d.Release(e.Context(), c))
}
