package core_test

import (
	"context"
	"errors"
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
		x := b.acquire(b.locks, "name")
		if want := asked.Add(ttl - drift); !x.ValidUntil().Equal(want) {
			b.Errorf("valid until %s after the request, not %s", x.ValidUntil().Sub(asked), ttl-drift)
		}
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
		b.is(x.Release(b.Context()), core.ErrLost)
		if n := b.link.Calls(lab.OpRelease) + b.link.Calls(lab.OpRenew); n != 0 {
			b.Errorf("%d commands of a lease that is neither renewed nor held", n)
		}
	})
}

func TestTheWatchdogRenewsEveryPeriod(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		time.Sleep(100 * ttl)
		b.ok(x.Err())
		if n := b.link.Calls(lab.OpRenew); n < 300 || n > 450 {
			b.Errorf("%d renewals in 300 periods", n)
		}
		b.ok(x.Release(b.Context()))
	})
}

func TestTheWatchdogIsSilentAfterTheEnd(t *testing.T) {
	t.Parallel()
	ends := map[string]func(b *bench){
		"release": func(b *bench) { b.ok(b.acquire(b.locks, "name").Release(b.Context())) },
		"complete": func(b *bench) {
			b.ok(b.acquire(b.locks, "name", core.WithDedup(time.Hour)).Complete(b.Context()))
		},
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
		"panic": func(b *bench) {
			defer func() { _ = recover() }()
			_ = b.locks.Do(b.Context(), "name", func(context.Context) error { panic("work") })
		},
		"close": func(b *bench) {
			x := b.acquire(b.locks, "name")
			time.AfterFunc(ttl, func() { b.ok(x.Release(b.Context())) })
			b.ok(b.locks.Close(b.Context()))
		},
		"close that gave up": func(b *bench) {
			b.acquire(b.locks, "name")
			ctx := b.in(ttl)
			b.is(b.locks.Close(ctx), context.DeadlineExceeded)
		},
	}
	for what, end := range ends {
		t.Run(what, func(t *testing.T) {
			virtual(t, func(b *bench) {
				end(b)
				commands := func() (n int) {
					for _, op := range []lab.Op{lab.OpAcquire, lab.OpRenew, lab.OpRelease} {
						n += b.link.Calls(op)
					}
					return n
				}
				synctest.Wait()
				before := commands()
				time.Sleep(10 * ttl)
				if n := commands() - before; n != 0 {
					b.Errorf("%d commands afterwards", n)
				}
				b.ok(b.acquire(b.other(), "name").Release(b.Context()))
			})
		})
	}
}

func TestRenewalStopsBeforeTheRelease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.link.Next(lab.OpRenew, lab.HeldBack)
		b.eventually("a renewal is under way", func() bool { return b.link.Calls(lab.OpRenew) == 1 })
		released := b.begin(func() error { return x.Release(b.Context()) })
		b.sent(0, lab.OpRelease)
		b.link.Deliver()
		b.ok(<-released)
		b.sent(1, lab.OpRenew)
	})
}

func TestDeafWorkKeepsTheNameOneMoreTTLAtMost(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithMaxHold(time.Minute))
		b.took(time.Minute, ttl+time.Second, func() {
			y, err := b.other().Acquire(b.Context(), "name")
			b.ok(err)
			if x.Err() == nil {
				b.Error("two holders")
			}
			b.ok(y.Release(b.Context()))
		})
		b.reason(x, core.ReasonMaxHold)
	})
}

func TestTheContextKeepsValuesAndNothingElse(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(b.Context(), key{}, "value"), time.Minute)
		x := b.lease(b.locks.Acquire(ctx, "name"))
		cancel()
		if x.Context().Err() != nil || x.Context().Value(key{}) != "value" {
			b.Errorf("%v, %v", x.Context().Err(), x.Context().Value(key{}))
		}
		if _, ok := x.Context().Deadline(); ok {
			b.Error("a deadline came along")
		}
		got, ok := core.FromContext(context.WithValue(x.Context(), key{}, 1))
		if fence, _ := core.FenceFor(x.Context(), x.Name()); !ok || got != x || fence != x.Fence() || fence == 0 {
			b.Errorf("the context does not know its lease: %v, fence %d", got, fence)
		}
		b.ok(x.Release(b.Context()))
		if cause := context.Cause(x.Context()); !errors.Is(cause, context.Canceled) || errors.Is(cause, core.ErrLost) {
			b.Errorf("cause after release: %v", cause)
		}
		if _, ok := core.FromContext(b.Context()); ok {
			b.Error("a lease out of nowhere")
		}
	})
}

func TestCompleteWithoutDedupReleasesAndSaysSo(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.is(x.Complete(b.Context()), core.ErrInvalid)
		b.ok(b.acquire(b.other(), "name").Release(b.Context()))
	})
}

func TestConcurrentReleasesGetOneResult(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.link.Delay(time.Millisecond, time.Millisecond)
		results := make(chan error, 10)
		for range 10 {
			go func() { results <- x.Release(b.Context()) }()
		}
		for range 10 {
			b.ok(<-results)
		}
		b.sent(1, lab.OpRelease)
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
				err := x.Release(b.Context())
				if lost, ok := errors.AsType[*core.LostError](err); !ok || lost.Reason != core.ReasonTaken {
					b.Errorf("%v, not a loss", err)
				}
				b.isNot(err, core.ErrUnavailable)
			}
			b.ok(y.Check(b.Context()))
			b.ok(y.Release(b.Context()))
			b.is(locks.Do(b.Context(), "name", func(context.Context) error { b.store.Lose("name"); return nil }), core.ErrLost)
		}
	})
}

func TestNotTheOwnerAfterAnUnknownReleaseIsSuccessOnlyWhileTrustStands(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		time.Sleep(ttl - drift - 10*time.Millisecond) // trust ends soon
		b.link.Next(lab.OpRelease, lab.ReplyLost)
		err := x.Release(b.Context())
		b.is(err, core.ErrUnavailable)
		b.isNot(err, core.ErrLost)
		b.sent(1, lab.OpRelease)
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

func TestNotTheOwnerThatArrivesAfterTrustEndedProvesNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		time.Sleep(time.Until(x.ValidUntil()) - 30*time.Millisecond)
		b.link.Next(lab.OpRelease, lab.ReplyReset)
		b.link.Delay(0, 100*time.Millisecond)
		err := x.Release(b.Context())
		b.sent(2, lab.OpRelease)
		b.is(err, core.ErrUnavailable)
		b.isNot(err, core.ErrLost)
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
			if trusted >= float64(ttl) {
				b.Errorf("TTL %v: trusted for %v of the server's time", ttl, time.Duration(trusted))
			}
			if trusted < float64(ttl)*0.95 {
				b.Errorf("TTL %v: trusted for %v of the server's time only", ttl, time.Duration(trusted))
			}
			b.ok(x.Release(b.Context()))
		})
	}
}
