package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestTrustCountsFromBeforeTheRequest(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(200*time.Millisecond, 300*time.Millisecond)
		asked := time.Now()
		b.validFor(b.acquire(b.locks, "name"), asked, ttl-drift)
	})
}

func TestSlowRenewalDoesNotExtendTrust(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithRenewEvery(4*time.Second))
		const late = 1200 * time.Millisecond
		b.link.Delay(0, late)
		time.Sleep(5250 * time.Millisecond) // one was asked for after 2.6 to 4 s, and answered
		b.sent(1, lab.OpRenew)
		latest := time.Now().Add(-late) // no reply that has come was asked for later
		if until := x.ValidUntil(); until.After(latest.Add(ttl - drift)) {
			b.Errorf("valid for %s", time.Until(until))
		}
		b.ok(x.Err())
	})
}

func TestAnAnswerAfterTrustEndedDoesNotRevive(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.link.All(lab.HeldBack, lab.OpRenew)
		<-x.Context().Done()
		b.reason(x, core.ReasonUnreachable)
		b.link.Deliver() // the server still had it, and says "yours"
		synctest.Wait()
		b.reason(x, core.ReasonUnreachable)
		b.is(x.Check(b.Context()), core.ErrLost)
	})
}

func TestTheContextEndsWhenTrustDoes(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		b.took(ttl-drift, 0, func() { <-x.Context().Done() })
		b.reason(x, core.ReasonExpired)
		ended := time.Now()
		time.Sleep(time.Second)
		lost := x.ValidUntil()
		b.is(x.Release(b.Context()), core.ErrLost)
		if until := x.ValidUntil(); !until.Equal(ended) || !lost.Equal(ended) {
			b.Errorf("trusted until %s and %s after its end", lost.Sub(ended), until.Sub(ended))
		}
		b.sent(0, lab.OpRelease, lab.OpRenew) // of a lease that is neither renewed nor held
	})
}

func TestTheWatchdogIsSilentAfterTheEnd(t *testing.T) {
	t.Parallel()
	each(t, map[string]func(b *bench){
		"release": func(b *bench) { b.ok(b.acquire(b.locks, "name").Release(b.Context())) },
		"loss": func(b *bench) {
			x := b.acquire(b.locks, "name")
			b.link.All(lab.Refused)
			<-x.Context().Done()
			b.link.All(lab.Delivered)
		},
		"max hold": func(b *bench) {
			x := b.acquire(b.locks, "name", core.WithMaxHold(ttl))
			<-x.Context().Done()
			b.reason(x, core.ReasonMaxHold)
		},
		"close": func(b *bench) {
			x := b.acquire(b.locks, "name")
			time.AfterFunc(ttl, func() { b.ok(x.Release(b.Context())) })
			b.ok(b.locks.Close(b.Context()))
		},
		"close that gave up": func(b *bench) {
			b.acquire(b.locks, "name")
			b.is(b.locks.Close(b.in(ttl)), context.DeadlineExceeded)
		},
	}, func(b *bench, end func(b *bench)) {
		end(b)
		synctest.Wait()
		before := b.commands()
		time.Sleep(10 * ttl)
		b.sent(before)
		b.free()
	})
}

func TestDeafWorkKeepsTheNameOneMoreTTLAtMost(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithMaxHold(time.Minute))
		b.took(time.Minute, ttl+time.Second, func() { b.gets(b.other().Acquire(b.Context(), "name")) })
		b.reason(x, core.ReasonMaxHold)
	})
}

func TestTheContextKeepsValuesAndNothingElse(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(b.Context(), key{}, "value"), time.Minute)
		x := b.lease(b.locks.Acquire(ctx, "name"))
		work := x.Context()
		cancel()
		_, ends := work.Deadline()
		if work.Err() != nil || work.Value(key{}) != "value" || ends {
			b.Errorf("%v, %v, deadline %t", work.Err(), work.Value(key{}), ends)
		}
		got, ok := core.FromContext(context.WithValue(work, key{}, 1))
		if fence, _ := core.FenceFor(work, x.Name()); !ok || got != x || fence != x.Fence() || fence == 0 {
			b.Errorf("the context does not know its lease: %v, fence %d", got, fence)
		}
		b.ok(x.Release(b.Context()))
		b.is(context.Cause(work), context.Canceled)
		b.isNot(context.Cause(work), core.ErrLost)
		if _, ok := core.FromContext(b.Context()); ok {
			b.Error("a lease out of nowhere")
		}
	})
}

// A process can ask for all of its leases with one context, which ends when the process does.
func TestACallersContextKeepsNothingOfALeaseThatIsOver(t *testing.T) {
	t.Parallel()
	each(t, map[string]func(b *bench, ctx *lab.Followed){
		"whose end was waited for": func(b *bench, ctx *lab.Followed) {
			b.ok(b.locks.Do(ctx, "name", func(work context.Context) error { work.Done(); return nil }))
		},
		"by two at once": func(b *bench, ctx *lab.Followed) {
			b.ok(b.locks.Do(ctx, "name", func(work context.Context) error {
				var inner <-chan struct{}
				ctx.Then = func() { inner = work.Done() }
				if outer := work.Done(); inner == nil || outer != inner {
					b.Error("two ends of one context")
				}
				return nil
			}))
		},
		"that is looked at later": func(b *bench, ctx *lab.Followed) {
			var work context.Context
			b.ok(b.locks.Do(ctx, "name", func(ctx context.Context) error { work = ctx; return nil })) //nolint:fatcontext // to look at it later
			b.is(work.Err(), context.Canceled)
		},
		"that is handed off": func(b *bench, ctx *lab.Followed) {
			var sent context.Context
			_ = b.locks.Do(ctx, "name", func(work context.Context) error {
				x, _ := core.FromContext(work)
				return x.HandOff(work, keep, func(ctx context.Context, _ core.Handoff) error { sent = ctx; return nil }) //nolint:fatcontext // as above
			})
			b.is(sent.Err(), context.Canceled)
		},
		"that is handed off in some time": func(b *bench, ctx *lab.Followed) {
			_ = b.locks.Do(ctx, "name", func(work context.Context) error {
				x, _ := core.FromContext(work)
				work, cancel := context.WithTimeout(work, time.Second)
				defer cancel()
				return x.HandOff(work, keep, func(context.Context, core.Handoff) error { return nil })
			})
		},
		"of a set": func(b *bench, ctx *lab.Followed) {
			s := b.set(b.locks.AcquireAll(ctx, pair))
			b.ok(s.Release(s.Context()))
		},
	}, func(b *bench, f func(b *bench, ctx *lab.Followed)) {
		ctx := &lab.Followed{Context: b.Context()}
		f(b, ctx)
		synctest.Wait()
		if n := ctx.Followers(); n != 0 {
			b.Errorf("%d are left", n)
		}
	})
}

func TestReleaseOfWhatSomebodyTookIsLost(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for _, locks := range []*core.Locker{b.locks, b.locker(b.store)} { // the latter asks on its caller's goroutine
			x := b.acquire(locks, "name")
			b.store.Lose("name") // an operator deletes it
			y := b.acquire(b.other(), "name")
			for range 2 {
				b.lostBecause(x.Release(b.Context()), "name", core.ReasonTaken)
			}
			b.ok(y.Check(b.Context()))
			b.ok(y.Release(b.Context()))
			b.is(locks.Do(b.Context(), "name", func(context.Context) error { b.store.Lose("name"); return nil }), core.ErrLost)
		}
	})
}

func TestNotTheOwnerAfterAnUnknownReleaseIsSuccessOnlyWhileTrustStands(t *testing.T) {
	t.Parallel()
	type row struct {
		left, reply time.Duration // of trust, and the way back
		fate        lab.Fate      // of the first release
		sent        int
	}
	each(t, map[string]row{
		"the second one is not sent":            {10 * time.Millisecond, 0, lab.ReplyLost, 1},
		"its answer comes when trust has ended": {30 * time.Millisecond, 100 * time.Millisecond, lab.ReplyReset, 2},
	}, func(b *bench, r row) {
		x := b.nearlyOver(r.left)
		b.link.Next(lab.OpRelease, r.fate)
		b.link.Delay(0, r.reply)
		err := x.Release(b.Context())
		b.is(err, core.ErrUnavailable)
		b.isNot(err, core.ErrLost)
		b.sent(r.sent, lab.OpRelease)
	})
}

func TestWhatSomebodyTookIsLostWithinOneRenewalAndLeftAlone(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.ok(b.store.Release(b.Context(), b.link.LastClaim())) // an operator deletes it
		y := b.acquire(b.other(), "name")
		b.took(period/2, period, func() { <-x.Context().Done() })
		b.reason(x, core.ReasonTaken)
		b.is(x.Release(b.Context()), core.ErrLost)
		b.sent(0, lab.OpRelease)
		b.ok(y.Check(b.Context()))
	})
}

// The clocks' rates may differ by 1%: see the conditions of docs/guarantees.md.
func TestAClockThatIsOnePercentSlowTrustsNothingAfterTheServersExpiry(t *testing.T) {
	t.Parallel()
	const slow = 0.99 // of a second by it, for each second of the server's
	for _, ttl := range []time.Duration{100 * time.Millisecond, 101 * time.Millisecond, time.Second, 10 * time.Second, time.Hour} {
		virtual(t, func(b *bench) {
			asked := time.Now()
			x := b.acquire(b.locks, "name", core.WithTTL(ttl), core.WithMaxHold(0))
			trusted := float64(x.ValidUntil().Sub(asked)) / slow // by the server's clock
			if trusted >= float64(ttl) || trusted < float64(ttl)*0.95 {
				b.Errorf("TTL %v: trusted for %v of the server's time", ttl, time.Duration(trusted))
			}
			b.ok(x.Release(b.Context()))
		})
	}
}
