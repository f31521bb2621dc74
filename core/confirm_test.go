package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// leave lets time pass until so much trust is left in x, which nothing else renews.
func (b *bench) leave(x *core.Lease, left time.Duration) {
	b.Helper()
	time.Sleep(time.Until(x.ValidUntil()) - left)
	if now := time.Until(x.ValidUntil()); now != left {
		b.Fatalf("%s left, not %s", now, left)
	}
}

// nearlyOver is a lease that nothing renews, and of whose trust so much is left.
func (b *bench) nearlyOver(left time.Duration, opts ...core.Option) *core.Lease {
	b.Helper()
	x := b.acquire(b.locks, "name", append(opts, core.WithoutRenewal())...)
	b.leave(x, left)
	return x
}

// lostBecause fails the test unless err is a loss of the name, for the reason.
func (b *bench) lostBecause(err error, name string, want core.Reason) {
	b.Helper()
	if lost, ok := errors.AsType[*core.LostError](err); !ok || lost.Name != name || lost.Reason != want {
		b.Errorf("%v, not a loss of %s because %s", err, name, want)
	}
	b.isNot(err, core.ErrUnavailable)
}

func TestConfirmWantsAThirdOfTheTTLAndRenewsBelowHalfOfIt(t *testing.T) {
	t.Parallel()
	type row struct {
		left time.Duration // when it is called
		fate lab.Fate      // of a renewal
		sent int
		wait time.Duration
		lost bool
	}
	each(t, map[string]row{
		"all is left":              {ttl - drift, lab.Delivered, 0, 0, false},
		"more than half":           {ttl/2 + time.Millisecond, lab.Delivered, 0, 0, false},
		"half":                     {ttl / 2, lab.Delivered, 1, 0, false},
		"a third":                  {ttl / 3, lab.Delivered, 1, 0, false},
		"next to nothing":          {time.Millisecond, lab.Delivered, 1, 0, false},
		"refused, enough":          {ttl / 2, lab.Refused, 1, 0, false},
		"refused, a third":         {ttl / 3, lab.Refused, 1, 0, false},
		"refused, less":            {ttl/3 - time.Millisecond, lab.Refused, 1, 0, true},
		"no answer, enough in all": {ttl / 2, lab.RequestLost, 1, ttl / 8, false},
		"no answer, less":          {ttl / 4, lab.RequestLost, 1, ttl / 16, true},
		"reset, enough":            {ttl / 2, lab.ReplyReset, 1, 0, false}, // it was renewed, and nobody knows
		"reset, less":              {ttl / 4, lab.ReplyReset, 1, 0, true},
	}, func(b *bench, r row) {
		x := b.nearlyOver(r.left)
		until := x.ValidUntil()
		b.link.All(r.fate, lab.OpRenew)
		b.took(r.wait, 0, func() {
			if err := core.Confirm(x.Context()); r.lost {
				b.lostBecause(err, "name", core.ReasonUnreachable)
			} else {
				b.ok(err)
			}
		})
		b.sent(r.sent, lab.OpRenew)
		if moved := !x.ValidUntil().Equal(until); moved != (r.sent > 0 && r.fate == lab.Delivered) {
			b.Errorf("trust has moved: %t", moved)
		}
		b.ok(x.Err()) // a refusal ends nothing
		b.link.All(lab.Delivered)
		b.ok(core.Confirm(x.Context()))
		b.ok(x.Release(b.Context()))
	})
}

func TestConfirmSendsNothingAfterTheEnd(t *testing.T) {
	t.Parallel()
	type row struct {
		opts []core.Option
		end  func(b *bench, x *core.Lease)
		want error
	}
	expires := func(_ *bench, x *core.Lease) { <-x.Context().Done() }
	each(t, map[string]row{
		"release": {nil, func(b *bench, x *core.Lease) { b.ok(x.Release(b.Context())) }, core.ErrReleased},
		"expiry":  {nil, expires, &core.LostError{Name: "name", Reason: core.ReasonExpired}},
		"max hold": {[]core.Option{core.WithMaxHold(ttl * 2 / 3)}, func(b *bench, x *core.Lease) {
			expires(b, x)
			b.taken(b.locks, "name") // still
		}, &core.LostError{Name: "name", Reason: core.ReasonMaxHold}},
	}, func(b *bench, r row) {
		x := b.nearlyOver(ttl/2, r.opts...)
		ctx := x.Context()
		r.end(b, x)
		for _, ctx := range []context.Context{ctx, context.WithoutCancel(ctx)} {
			if err := core.Confirm(ctx); fmt.Sprint(err) != fmt.Sprint(r.want) {
				b.Errorf("%v, not %v", err, r.want)
			}
		}
		b.sent(0, lab.OpRenew)
		b.is(core.Confirm(b.Context()), core.ErrInvalid) // without a lease
	})
}

func TestConfirmAfterCloseRenewsOnlyForWorkThatFinishesAllTheSame(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.nearlyOver(ttl / 2)
		ctx := x.Context()
		closed := b.begin(func() error { return b.locks.Close(b.Context()) })
		<-ctx.Done()
		b.is(core.Confirm(ctx), core.ErrClosed)
		b.sent(0, lab.OpRenew)
		b.ok(core.Confirm(context.WithoutCancel(ctx)))
		b.sent(1, lab.OpRenew)
		b.ok(x.Release(b.Context()))
		b.ok(<-closed)
	})
}

func TestConfirmRenewsNothingThatCloseHasLeftToItsTTL(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		b.is(b.locks.Close(b.in(time.Second)), context.DeadlineExceeded)
		b.leave(x, ttl/3)
		work := context.WithoutCancel(x.Context())
		b.ok(core.Confirm(work))
		time.Sleep(time.Millisecond)
		b.is(core.Confirm(work), core.ErrLost)
		b.sent(0, lab.OpRenew)
	})
}

func TestConfirmReturnsWhenItsContextEndsAndTheRenewalCounts(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.nearlyOver(ttl / 3)
		b.link.Delay(0, time.Second/2)
		why := errors.New("the caller has hung up")
		ctx, cancel := context.WithTimeoutCause(x.Context(), 100*time.Millisecond, why)
		defer cancel()
		asked := time.Now()
		b.took(100*time.Millisecond, 0, func() { b.is(core.Confirm(ctx), why) })
		b.took(0, 0, func() { b.is(core.Confirm(ctx), why) })
		b.sent(1, lab.OpRenew)
		time.Sleep(time.Second)
		b.validFor(x, asked, ttl-drift)
		b.is(core.Confirm(ctx), why) // however much is left
	})
}

func TestConfirmLooksAtEveryLeaseThatTheWorkStandsUnder(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		outer := b.acquire(b.locks, "outer", core.WithoutRenewal(), core.WithTTL(time.Second))
		inner := b.lease(b.locks.TryAcquire(outer.Context(), "inner"))
		twice := b.lease(b.locks.TryAcquire(inner.Context(), "outer"))
		ctx := twice.Context()
		b.leave(outer, time.Second/2)
		b.ok(core.Confirm(ctx))
		b.sent(1, lab.OpRenew) // once, although it is entered twice
		b.leave(outer, time.Second/4)
		b.link.Next(lab.OpRenew, lab.Refused)
		b.ok(twice.Release(b.Context()))
		b.lostBecause(core.Confirm(inner.Context()), "outer", core.ReasonUnreachable)
		b.leave(outer, 0)
		b.ok(inner.Err())
		b.is(core.Confirm(inner.Context()), core.ErrLost)

		outer = b.acquire(b.locks, "given-back")
		inner = b.lease(b.locks.TryAcquire(outer.Context(), "another", core.WithoutRenewal()))
		b.ok(outer.Release(b.Context()))
		b.ok(core.Confirm(inner.Context()))
	})
}

func TestTheReleaseAwaitsARenewal(t *testing.T) {
	t.Parallel()
	type row struct {
		fate lab.Fate
		ask  func(b *bench) (*core.Lease, <-chan error) // it is under way
	}
	each(t, map[string]row{
		"by Confirm": {lab.ReplyHeldBack, func(b *bench) (*core.Lease, <-chan error) {
			x := b.nearlyOver(ttl / 2)
			ctx := context.WithoutCancel(x.Context())
			return x, b.begin(func() error { return core.Confirm(ctx) })
		}},
		"by the watchdog": {lab.HeldBack, func(b *bench) (*core.Lease, <-chan error) {
			x := b.acquire(b.locks, "name")
			b.eventually("a renewal is under way", func() bool { return b.link.Calls(lab.OpRenew) == 1 })
			return x, nil
		}},
	}, func(b *bench, r row) {
		b.link.Next(lab.OpRenew, r.fate)
		x, confirmed := r.ask(b)
		ctx := context.WithoutCancel(x.Context())
		released := b.begin(func() error { return x.Release(b.Context()) })
		b.sent(0, lab.OpRelease) // beside the renewal
		b.link.Deliver()
		b.ok(<-released)
		if confirmed != nil {
			b.is(<-confirmed, core.ErrReleased)
		}
		b.is(core.Confirm(ctx), core.ErrReleased)
		b.sent(1, lab.OpRenew)
		b.free()
	})
}

func TestConfirmWaitsForTheWatchdogsRenewalInsteadOfItsOwn(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithRenewEvery(ttl*2/3))
		b.link.Next(lab.OpRenew, lab.HeldBack)
		b.eventually("the watchdog renews", func() bool { return b.link.Calls(lab.OpRenew) == 1 })
		confirmed := b.begin(func() error { return core.Confirm(x.Context()) })
		time.Sleep(time.Second / 2)
		b.link.Deliver()
		b.ok(<-confirmed)
		b.sent(1, lab.OpRenew)
	})
}

// The answer comes late, whatever the context says, as if the process had stood still.
func TestAnAnswerToConfirmAfterTrustEndedDoesNotRevive(t *testing.T) {
	t.Parallel()
	for range 20 { // the watchdog may see the end first
		virtual(t, func(b *bench) {
			slow := &hooked{Driver: b.store} // it answers late, whatever the context says, as if the process had stood still
			slow.renew = func(ctx context.Context, claims []driver.Claim) []error {
				errs := b.store.Renew(ctx, claims)
				time.Sleep(ttl / 2)
				return errs
			}
			b.locks = b.locker(slow)
			x := b.nearlyOver(ttl / 2)
			time.Sleep(time.Millisecond)
			b.took(ttl/2-time.Millisecond, 0, func() {
				b.lostBecause(core.Confirm(context.WithoutCancel(x.Context())), "name", core.ReasonExpired)
			})
			time.Sleep(ttl / 2) // the answer has come
			b.reason(x, core.ReasonExpired)
			b.is(core.Confirm(x.Context()), core.ErrLost)
		})
	}
}
