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
	"github.com/holdfast-go/holdfast/core/memlock"
)

// leave lets time pass until so much trust is left in x, which nothing else renews.
func (b *bench) leave(x *core.Lease, left time.Duration) {
	b.Helper()
	time.Sleep(time.Until(x.ValidUntil()) - left)
	if now := time.Until(x.ValidUntil()); now != left {
		b.Fatalf("%s left, not %s", now, left)
	}
}

// renewed fails the test unless so many renewals were sent.
func (b *bench) renewed(times int) {
	b.Helper()
	b.sent(times, lab.OpRenew)
}

// lostBecause fails the test unless err is a loss of the name, for the reason.
func (b *bench) lostBecause(err error, name string, want core.Reason) {
	b.Helper()
	if lost, ok := errors.AsType[*core.LostError](err); !ok || lost.Name != name || lost.Reason != want {
		b.Errorf("%v, not a loss of %s because %s", err, name, want)
	}
	b.isNot(err, core.ErrUnavailable)
}

func TestConfirmIsFreeWhileMoreThanHalfOfTheTTLIsLeft(t *testing.T) {
	t.Parallel()
	for left, commands := range map[time.Duration]int{
		ttl - drift:              0,
		ttl/2 + time.Millisecond: 0,
		ttl / 2:                  1,
		ttl / 3:                  1,
		time.Millisecond:         1,
	} {
		t.Run(left.String(), func(t *testing.T) {
			virtual(t, func(b *bench) {
				x := b.acquire(b.locks, "name", core.WithoutRenewal())
				b.leave(x, left)
				b.ok(core.Confirm(x.Context()))
				b.renewed(commands)
			})
		})
	}
}

func TestConfirmTrustsFromBeforeItsRequest(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		b.leave(x, ttl/3)
		b.link.Delay(300*time.Millisecond, 400*time.Millisecond)
		asked := time.Now()
		b.took(700*time.Millisecond, 0, func() { b.ok(core.Confirm(x.Context())) })
		if want := asked.Add(ttl - drift); !x.ValidUntil().Equal(want) {
			b.Errorf("valid until %s after the request, not %s", x.ValidUntil().Sub(asked), ttl-drift)
		}
		b.took(ttl-drift-700*time.Millisecond, 0, func() { <-x.Context().Done() })
		b.reason(x, core.ReasonExpired) // the watchdog stays off
		b.renewed(1)
	})
}

func TestConfirmWantsAThirdOfTheTTLWhateverTheAnswer(t *testing.T) {
	t.Parallel()
	type row struct {
		fate lab.Fate
		left time.Duration // when it is called
		wait time.Duration
		lost bool
	}
	each(t, map[string]row{
		"refused, enough":          {lab.Refused, ttl / 2, 0, false},
		"refused, a third":         {lab.Refused, ttl / 3, 0, false},
		"refused, less":            {lab.Refused, ttl/3 - time.Millisecond, 0, true},
		"no answer, enough in all": {lab.RequestLost, ttl / 2, ttl / 8, false},
		"no answer, less":          {lab.RequestLost, ttl / 4, ttl / 16, true},
		"reset, enough":            {lab.ReplyReset, ttl / 2, 0, false}, // it was renewed, and nobody knows
		"reset, less":              {lab.ReplyReset, ttl / 4, 0, true},
	}, func(b *bench, r row) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		until := x.ValidUntil()
		b.leave(x, r.left)
		b.link.All(r.fate, lab.OpRenew)
		b.took(r.wait, 0, func() {
			if err := core.Confirm(x.Context()); r.lost {
				b.lostBecause(err, "name", core.ReasonUnreachable)
			} else {
				b.ok(err)
			}
		})
		b.renewed(1)
		if !x.ValidUntil().Equal(until) {
			b.Error("trust has moved without an answer")
		}
		b.ok(x.Err()) // a refusal ends nothing
		b.link.All(lab.Delivered)
		b.ok(core.Confirm(x.Context()))
		b.ok(x.Release(b.Context()))
	})
}

func TestConfirmFindsOutThatTheNameWasTaken(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		b.store.Lose("name") // an operator deletes it
		y := b.acquire(b.other(), "name", core.WithTTL(time.Minute))
		b.leave(x, ttl/2)
		b.lostBecause(core.Confirm(x.Context()), "name", core.ReasonTaken)
		b.reason(x, core.ReasonTaken)
		b.lostBecause(core.Confirm(x.Context()), "name", core.ReasonTaken)
		b.renewed(1)
		b.is(x.Release(b.Context()), core.ErrLost)
		b.ok(y.Check(b.Context()))
	})
}

func TestConfirmWithoutALeaseIsInvalid(t *testing.T) {
	t.Parallel()
	err := core.Confirm(t.Context())
	if !errors.Is(err, core.ErrInvalid) {
		t.Error(err)
	}
}

func TestConfirmSendsNothingAfterTheEnd(t *testing.T) {
	t.Parallel()
	ends := map[string]func(b *bench, x *core.Lease) error{
		"release": func(b *bench, x *core.Lease) error {
			b.ok(x.Release(b.Context()))
			return core.ErrReleased
		},
		"expiry": func(_ *bench, x *core.Lease) error {
			<-x.Context().Done()
			return &core.LostError{Name: "name", Reason: core.ReasonExpired}
		},
		"max hold": func(b *bench, x *core.Lease) error {
			<-x.Context().Done() // and the name is still taken
			b.is(b.locks.Do(b.Context(), "name", noWork, core.WithWait(0)), core.ErrHeld)
			return &core.LostError{Name: "name", Reason: core.ReasonMaxHold}
		},
	}
	for what, end := range ends {
		t.Run(what, func(t *testing.T) {
			virtual(t, func(b *bench) {
				opts := []core.Option{core.WithoutRenewal()}
				if what == "max hold" {
					opts = append(opts, core.WithMaxHold(ttl*2/3))
				}
				x := b.acquire(b.locks, "name", opts...)
				ctx := x.Context()
				b.leave(x, ttl/2)
				want := end(b, x)
				for _, ctx := range []context.Context{ctx, context.WithoutCancel(ctx)} {
					if err := core.Confirm(ctx); fmt.Sprint(err) != fmt.Sprint(want) {
						b.Errorf("%v, not %v", err, want)
					}
				}
				b.renewed(0)
			})
		})
	}
}

func TestConfirmAfterCloseRenewsOnlyForWorkThatFinishesAllTheSame(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		ctx := x.Context()
		b.leave(x, ttl/2)
		closed := b.begin(func() error { return b.locks.Close(b.Context()) })
		<-ctx.Done()
		b.is(core.Confirm(ctx), core.ErrClosed)
		b.renewed(0)
		b.ok(core.Confirm(context.WithoutCancel(ctx)))
		b.renewed(1)
		b.ok(x.Release(b.Context()))
		b.ok(<-closed)
	})
}

func TestConfirmRenewsNothingThatCloseHasLeftToItsTTL(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		ctx := b.in(time.Second)
		b.is(b.locks.Close(ctx), context.DeadlineExceeded)
		b.leave(x, ttl/3)
		work := context.WithoutCancel(x.Context())
		b.ok(core.Confirm(work))
		time.Sleep(time.Millisecond)
		b.is(core.Confirm(work), core.ErrLost)
		b.renewed(0)
	})
}

func TestConfirmReturnsWhenItsContextEndsAndTheRenewalCounts(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithoutRenewal())
		b.leave(x, ttl/3)
		b.link.Delay(0, time.Second/2)
		why := errors.New("the caller has hung up")
		ctx, cancel := context.WithTimeoutCause(x.Context(), 100*time.Millisecond, why)
		defer cancel()
		asked := time.Now()
		b.took(100*time.Millisecond, 0, func() { b.is(core.Confirm(ctx), why) })
		b.took(0, 0, func() { b.is(core.Confirm(ctx), why) })
		b.renewed(1)
		time.Sleep(time.Second)
		if want := asked.Add(ttl - drift); !x.ValidUntil().Equal(want) {
			b.Errorf("valid until %s after the request", x.ValidUntil().Sub(asked))
		}
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
		b.renewed(1) // once, although it is entered twice
		b.leave(outer, time.Second/4)
		b.link.Next(lab.OpRenew, lab.Refused)
		b.is(twice.Release(b.Context()), nil)
		b.lostBecause(core.Confirm(inner.Context()), "outer", core.ReasonUnreachable)
		b.leave(outer, 0)
		b.ok(inner.Err())
		b.is(core.Confirm(inner.Context()), core.ErrLost)
	})
}

func TestConfirmIsNotHeldToALeaseThatWasGivenBack(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		outer := b.acquire(b.locks, "outer")
		inner := b.lease(b.locks.TryAcquire(outer.Context(), "inner", core.WithoutRenewal()))
		b.ok(outer.Release(b.Context()))
		b.leave(inner, ttl/2)
		b.ok(core.Confirm(inner.Context()))
		b.renewed(1)
	})
}

func TestTheReleaseAwaitsAConfirm(t *testing.T) {
	t.Parallel()
	for _, fate := range []lab.Fate{lab.HeldBack, lab.ReplyHeldBack} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name", core.WithoutRenewal())
			ctx := context.WithoutCancel(x.Context())
			b.leave(x, ttl/2)
			b.link.Next(lab.OpRenew, fate)
			confirmed := b.begin(func() error { return core.Confirm(ctx) })
			released := b.begin(func() error { return x.Release(b.Context()) })
			b.sent(0, lab.OpRelease)
			b.link.Deliver()
			b.ok(<-released)
			b.is(<-confirmed, core.ErrReleased)
			b.is(core.Confirm(ctx), core.ErrReleased)
			b.renewed(1)
			b.ok(b.acquire(b.other(), "name").Release(b.Context()))
		})
	}
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
		b.renewed(1)
	})
}

// slow is a backend that answers renewals, "yours" among them, after so long, whatever the
// context says.
type slow struct {
	*memlock.Store
	by time.Duration
}

func (s slow) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs := s.Store.Renew(ctx, claims)
	time.Sleep(s.by)
	return errs
}

func TestAnAnswerToConfirmAfterTrustEndedDoesNotRevive(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		locks, err := core.New(slow{memlock.New(), ttl / 2}) // as if the process had stood still
		b.ok(err)
		defer func() { b.ok(locks.Close(b.Context())) }()
		x := b.acquire(locks, "name", core.WithoutRenewal())
		b.leave(x, ttl/2)
		time.Sleep(time.Millisecond)
		b.took(ttl/2-time.Millisecond, 0, func() {
			b.lostBecause(core.Confirm(context.WithoutCancel(x.Context())), "name", core.ReasonExpired)
		})
		time.Sleep(ttl / 2) // the answer has come
		b.reason(x, core.ReasonExpired)
		b.is(core.Confirm(x.Context()), core.ErrLost)
	})
}
