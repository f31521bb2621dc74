package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
)

const keep = time.Minute

func (b *bench) detach(x *core.Lease) core.Ticket {
	b.Helper()
	ticket, err := x.Detach(b.Context(), keep)
	b.ok(err)
	return ticket
}

func (b *bench) isFree(name string) {
	b.Helper()
	b.ok(b.acquire(b.other(), name).Release(b.Context()))
}

func TestADetachedLeaseGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other, third := b.other(), b.other()
		x := b.acquire(b.locks, "name", core.WithLabel("request"))
		work := x.Context()
		ticket := b.detach(x)
		if ticket.Name() != "name" || !errors.Is(context.Cause(work), context.Canceled) {
			b.Errorf("ticket %v, context %v", ticket, context.Cause(work))
		}
		if lost, ok := errors.AsType[*core.LostError](x.Err()); !ok || lost.Reason != core.ReasonReleased {
			b.Errorf("%v", x.Err())
		}
		b.ok(x.Release(b.Context())) // as if it had been released
		renewals := b.link.Calls(drivertest.OpRenew)
		time.Sleep(keep / 2)
		for _, l := range []*core.Locker{b.locks, other, third} {
			_, err := l.TryAcquire(b.Context(), "name")
			held, ok := errors.AsType[*core.HeldError](err)
			if !ok || held.Label != "request" || held.RetryAfter > time.Second {
				b.Errorf("%v %+v", err, held)
			}
		}
		y, err := other.Attach(b.Context(), ticket, core.WithWait(0))
		b.ok(err)
		if y.Fence() <= x.Fence() {
			b.Errorf("fence %d after %d", y.Fence(), x.Fence())
		}
		time.Sleep(keep) // it is renewed, and the ticket's time counts no more
		b.ok(y.Check(b.Context()))
		if n := b.link.Calls(drivertest.OpRenew); n != renewals {
			b.Errorf("%d renewals of a detached lease", n-renewals)
		}
		b.ok(y.Release(b.Context()))
		b.isFree("name")
	})
}

func TestATicketIsWorthNothingTwice(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ticket := b.detach(b.acquire(b.locks, "name"))
		y, err := b.other().Attach(b.Context(), ticket)
		b.ok(err)
		third := b.other()
		_, err = third.Attach(b.Context(), ticket, core.WithWait(0))
		b.is(err, core.ErrHeld)
		b.took(time.Second, 0, func() {
			_, err = third.Attach(b.Context(), ticket, core.WithWait(time.Second))
			b.is(err, core.ErrHeld)
		})
		b.ok(y.Release(b.Context()))
		z, err := third.Attach(b.Context(), ticket) // an ordinary acquire
		b.ok(err)
		b.ok(z.Release(b.Context()))
	})
}

func TestANameThatNobodyComesForIsFreeAfterKeep(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ticket := b.detach(b.acquire(b.locks, "name"))
		other := b.other()
		b.took(keep, 10*time.Millisecond, func() {
			x, err := other.Acquire(b.Context(), "name")
			b.ok(err)
			b.ok(x.Release(b.Context()))
		})
		x, err := other.Attach(b.Context(), ticket)
		b.ok(err)
		b.ok(x.Release(b.Context()))
	})
}

func TestDetachGivesNoTurnToThoseWhoWaitInTheProcess(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		waited := make(chan *core.Lease)
		go func() {
			y, err := b.locks.Acquire(b.Context(), "name")
			if err != nil {
				b.Error(err)
			}
			waited <- y
		}()
		synctest.Wait()
		ticket := b.detach(x)
		time.Sleep(keep / 2)
		select {
		case <-waited:
			b.Fatal("a waiter got a name that is left for a ticket")
		default:
		}
		z, err := b.locks.Attach(b.Context(), ticket) // before those who wait, in the same process too
		b.ok(err)
		b.ok(z.Release(b.Context()))
		y := <-waited
		if y.Fence() <= z.Fence() {
			b.Errorf("fence %d after %d", y.Fence(), z.Fence())
		}
		b.ok(y.Release(b.Context()))
	})
}

func TestADetachWhoseAnswerIsLostIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, fate := range []drivertest.Fate{drivertest.ReplyLost, drivertest.ReplyReset, drivertest.RequestLost} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name")
			b.link.Next(drivertest.OpRelease, fate)
			ticket := b.detach(x)
			y, err := b.other().Attach(b.Context(), ticket, core.WithWait(0))
			b.ok(err)
			b.ok(y.Release(b.Context()))
		})
	}
}

func TestAnAttachWhoseAnswerIsLostIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, core.WaitForever} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.other(), "name")
			ticket := b.detach(x)
			b.link.Next(drivertest.OpAcquire, drivertest.ReplyLost)
			y, err := b.locks.Attach(b.Context(), ticket, core.WithWait(wait))
			b.ok(err)
			if y.Fence() <= x.Fence() {
				b.Errorf("fence %d after %d", y.Fence(), x.Fence())
			}
			b.ok(y.Release(b.Context()))
			b.isFree("name")
		})
	}
}

func TestADetachOfUnknownOutcomeLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.link.All(drivertest.ReplyLost, drivertest.OpRelease)
		ctx, cancel := context.WithTimeout(b.Context(), 100*time.Millisecond)
		defer cancel()
		ticket, err := x.Detach(ctx, keep)
		b.is(err, core.ErrUnavailable, context.DeadlineExceeded)
		if ticket != (core.Ticket{}) {
			b.Error("a ticket")
		}
		b.link.All(drivertest.Delivered, drivertest.OpRelease)
		time.Sleep(ttl)
		b.isFree("name")
	})
}

func TestAnAttachThatFindsTheWorkDoneFreesTheName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other, dedup := b.other(), []core.Option{core.WithDedup(time.Hour), core.WithDedupScope("ship")}
		b.ok(other.Do(b.Context(), "name", func(context.Context) error { return nil }, dedup...))
		ticket := b.detach(b.acquire(b.locks, "name"))
		_, err := other.Attach(b.Context(), ticket, dedup...)
		b.is(err, core.ErrDone)
		synctest.Wait()
		b.isFree("name")
	})
}

func TestWhatCannotBeDetachedStands(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		keep time.Duration
		opts []core.Option
	}{
		{"no time", 0, nil},
		{"a negative time", -1, nil},
		{"less than a millisecond", time.Microsecond, nil},
		{"more than ten years", 11 * 365 * 24 * time.Hour, nil},
		{"a reader", keep, []core.Option{core.WithShared()}},
		{"a permit", keep, []core.Option{core.WithLimit(2)}},
		{"a name that is kept anyhow", keep, []core.Option{core.WithMinHold(time.Millisecond)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				x := b.acquire(b.locks, "name", c.opts...)
				_, err := x.Detach(b.Context(), c.keep)
				b.is(err, core.ErrInvalid)
				b.ok(x.Check(b.Context()))
				b.ok(x.Release(b.Context()))
				time.Sleep(time.Second)
				b.isFree("name")
			})
		})
	}
}

func TestDetachNeedsTheOnlyLeaseOfItsName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		inner, err := b.locks.Acquire(x.Context(), "name")
		b.ok(err)
		for _, lease := range []*core.Lease{x, inner} {
			_, err := lease.Detach(b.Context(), keep)
			b.is(err, core.ErrInvalid)
			b.ok(lease.Err())
		}
		b.ok(inner.Release(b.Context()))
		all, err := b.locks.AcquireAll(b.Context(), []string{"a", "b"})
		b.ok(err)
		_, err = all.Detach(b.Context(), keep)
		b.is(err, core.ErrInvalid)
		b.ok(all.Release(b.Context()))
		b.detach(x)
	})
}

func TestDetachOfALeaseThatIsOverSaysSo(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		_, err := x.Detach(ctx, keep)
		b.is(err, context.Canceled)
		b.ok(x.Err()) // it stands
		b.ok(x.Release(b.Context()))
		_, err = x.Detach(b.Context(), keep)
		b.is(err, core.ErrLost)

		x = b.acquire(b.locks, "name")
		b.ok(b.store.Release(b.Context(), b.link.LastClaim()))
		_, err = x.Detach(b.Context(), keep)
		b.is(err, core.ErrLost)
		b.isFree("name")

		x = b.acquire(b.locks, "name")
		b.detach(x)
		_, err = x.Detach(b.Context(), keep)
		b.is(err, core.ErrLost)
	})
}

func TestATicketIsForOneCallOfItsName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ticket := b.detach(b.acquire(b.locks, "name"))
		with := core.WithTicket(ticket)
		_, err := core.New(b.store, with)
		b.is(err, core.ErrInvalid)
		_, err = b.locks.With(with)
		b.is(err, core.ErrInvalid)
		_, err = b.locks.AcquireAll(b.Context(), []string{"name", "other"}, with)
		b.is(err, core.ErrInvalid)
		_, err = b.locks.Acquire(b.Context(), "other", with)
		b.is(err, core.ErrInvalid)
		_, err = b.locks.Acquire(b.Context(), "name", with, core.WithShared())
		b.is(err, core.ErrInvalid)
		_, err = b.locks.Attach(b.Context(), core.Ticket{})
		b.is(err, core.ErrInvalid)
		_, err = b.locks.Acquire(b.Context(), "name", core.WithTicket(core.Ticket{}))
		b.is(err, core.ErrInvalid)
		b.ok(b.locks.Do(b.Context(), "name", func(context.Context) error { return nil }, with))
		b.isFree("name")
	})
}

func TestABackendWithoutTicketsSaysSo(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		plain, err := core.New(noTickets{b.store})
		b.ok(err)
		x := b.acquire(plain, "name")
		_, err = x.Detach(b.Context(), keep)
		b.is(err, core.ErrInvalid)
		b.ok(x.Release(b.Context()))
		ticket := b.detach(b.acquire(b.locks, "other"))
		_, err = plain.Attach(b.Context(), ticket)
		b.is(err, core.ErrInvalid)
		b.ok(plain.Close(b.Context()))
	})
}

type noTickets struct{ driver.Driver }

func (d noTickets) Capabilities() driver.Capabilities {
	can := d.Driver.Capabilities()
	can.Detach = false
	return can
}

func TestWorkThatIsHandedOverGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(b.Context(), key{}, "value"), time.Hour)
		defer cancel()
		sent := make(chan core.Ticket, 1)
		b.ok(b.locks.Do(ctx, "name", func(work context.Context) error {
			x, _ := core.FromContext(work)
			err := x.HandOver(work, keep, func(beyond context.Context, ticket core.Ticket) error {
				b.ok(beyond.Err())
				deadline, _ := beyond.Deadline()
				want, _ := ctx.Deadline()
				if beyond.Value(key{}) != "value" || !deadline.Equal(want) {
					b.Errorf("value %v, deadline %s", beyond.Value(key{}), deadline)
				}
				sent <- ticket
				return nil
			})
			b.ok(err)
			b.is(work.Err(), context.Canceled)
			return err
		}))
		_, err := b.other().TryAcquire(b.Context(), "name")
		b.is(err, core.ErrHeld)
		y, err := b.other().Attach(b.Context(), <-sent)
		b.ok(err)
		b.ok(y.Release(b.Context()))
	})
}

func TestWhatCouldNotBeHandedOverIsFree(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		full := errors.New("the queue is full")
		x := b.acquire(b.locks, "name")
		b.is(x.HandOver(b.Context(), keep, func(context.Context, core.Ticket) error { return full }), full)
		b.isFree("name")

		x = b.acquire(b.locks, "name")
		func() {
			defer func() { _ = recover() }()
			_ = x.HandOver(b.Context(), keep, func(context.Context, core.Ticket) error { panic("send") })
		}()
		b.isFree("name")

		x = b.acquire(b.locks, "name") // somebody was quicker than the error
		other := b.other()
		var y *core.Lease
		b.is(x.HandOver(b.Context(), keep, func(_ context.Context, ticket core.Ticket) (err error) {
			y, err = other.Attach(b.Context(), ticket)
			b.ok(err)
			return full
		}), full)
		b.ok(y.Check(b.Context()))
		b.ok(y.Release(b.Context()))

		x = b.acquire(b.locks, "name")
		b.is(x.HandOver(b.Context(), keep, nil), core.ErrInvalid)
		b.ok(x.Err())
		b.ok(x.Release(b.Context()))
	})
}

func TestWhatIsHandedOverEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		err := b.locks.Do(ctx, "name", func(work context.Context) error {
			x, _ := core.FromContext(work)
			return x.HandOver(work, keep, func(beyond context.Context, _ core.Ticket) error {
				cancel()
				<-beyond.Done()
				return context.Cause(beyond)
			})
		})
		b.is(err, context.Canceled)
		synctest.Wait()
		b.isFree("name")
	})
}

func TestADetachedLeaseLeavesNoMarker(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var ticket core.Ticket
		b.ok(b.locks.Do(b.Context(), "name", func(ctx context.Context) (err error) {
			x, _ := core.FromContext(ctx)
			ticket, err = x.Detach(ctx, keep)
			return err
		}, core.WithDedup(time.Hour)))
		ran := false
		b.ok(b.other().Do(b.Context(), "name", func(context.Context) error { ran = true; return nil },
			core.WithDedup(time.Hour), core.WithTicket(ticket)))
		b.is(b.other().Do(b.Context(), "name", noWork, core.WithDedup(time.Hour)), core.ErrDone)
		if !ran {
			b.Error("it did not run")
		}
	})
}

func noWork(context.Context) error { return nil }

func TestATicketTravelsAsText(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for _, name := range []string{"a", "order:42", "bücher:ß", strings.Repeat("x", 200)} {
			ticket := b.detach(b.acquire(b.locks, name))
			text := ticket.Encode()
			if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(text) > 290 {
				b.Errorf("%q", text)
			}
			read, err := core.ParseTicket(text)
			if err != nil || read != ticket {
				b.Errorf("%v, %v", read, err)
			}
			y, err := b.other().Attach(b.Context(), read, core.WithWait(0))
			b.ok(err)
			b.ok(y.Release(b.Context()))
		}
	})
}

func TestWhatIsNoTicketIsInvalid(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		text := b.detach(b.acquire(b.locks, "name")).Encode()
		for _, bad := range []string{"", "0", text[:20], text[:22], "B" + text[1:], text + "=", text + "\n", text + "Cg", core.Ticket{}.Encode()} {
			ticket, err := core.ParseTicket(bad)
			b.is(err, core.ErrInvalid)
			if ticket != (core.Ticket{}) || len(bad) > 9 && err != nil && strings.Contains(err.Error(), bad) {
				b.Errorf("%q: %v", bad, err)
			}
		}
	})
}

func TestATicketPrintsAsItsName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ticket := b.detach(b.acquire(b.locks, "name"))
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			for _, thing := range []any{ticket, &ticket} {
				if got := fmt.Sprintf(verb, thing); got != `ticket("name")` {
					b.Errorf("%s: %s", verb, got)
				}
			}
		}
		var out strings.Builder
		slog.New(slog.NewJSONHandler(&out, nil)).Info("it", "ticket", ticket)
		if !strings.Contains(out.String(), `ticket(\"name\")`) {
			b.Error(out.String())
		}
		if text, err := json.Marshal(map[string]any{"ticket": ticket}); err == nil {
			b.Errorf("marshalled: %s", text)
		}
	})
}

func FuzzATicketIsReadAsWrittenOrNotAtAll(f *testing.F) {
	f.Add("AQAAAAAAAAAAAAAAAAAAAABuYW1l")
	f.Add("")
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, s string) {
		ticket, err := core.ParseTicket(s)
		if err != nil {
			if !errors.Is(err, core.ErrInvalid) {
				t.Errorf("%v", err)
			}
			return
		}
		if ticket.Encode() != s || ticket.Name() == "" {
			t.Errorf("%q is read as %v and written as %q", s, ticket, ticket.Encode())
		}
	})
}

func TestADegradedLeaseCannotBeDetached(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.All(drivertest.Refused)
		x := b.acquire(b.localOnly(), "name")
		b.degraded(x)
		_, err := x.Detach(b.Context(), keep)
		b.is(err, core.ErrUnavailable)
		b.ok(x.Err()) // it stands
		b.ok(x.Release(b.Context()))
	})
}

func TestNobodyGoesLocalBesideAnAttachedLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		local := b.localOnly()
		ticket := b.detach(b.acquire(b.other(), "name"))
		y, err := b.locks.Attach(b.Context(), ticket)
		b.ok(err)
		b.outage(drivertest.Refused)
		_, err = local.TryAcquire(b.Context(), "name")
		b.is(err, core.ErrHeld)
		b.ok(y.Err())
		b.link.All(drivertest.Delivered)
		b.ok(y.Release(b.Context()))
		b.link.All(drivertest.Refused)
		x := b.acquire(local, "name")
		b.degraded(x)

		ticket = b.detach(b.acquire(b.other(), "name"))
		b.link.All(drivertest.Delivered) // the backend is back, and says yes
		_, err = b.locks.Attach(b.Context(), ticket, core.WithWait(0))
		b.is(err, core.ErrHeld)
		b.ok(x.Release(b.Context()))
		y, err = b.locks.Attach(b.Context(), ticket, core.WithWait(0))
		b.ok(err)
		b.ok(y.Release(b.Context()))
	})
}

func TestADetachedNameShowsTheFenceOfItsLastTurn(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		turns := make(chan *core.Lease)
		x := b.acquire(b.other(), "name")
		for range 2 {
			go func() {
				y, err := b.locks.Acquire(b.Context(), "name")
				if err != nil {
					b.Error(err)
				}
				turns <- y
			}()
		}
		synctest.Wait()
		b.ok(x.Release(b.Context())) // two wait, so the grant is for turns
		y := <-turns
		b.ok(y.Release(b.Context()))
		z := <-turns
		ticket := b.detach(z)
		operator, err := core.New(b.store)
		b.ok(err)
		info, err := operator.Inspect(b.Context(), "name")
		b.ok(err)
		if info.Fence != z.Fence() || z.Fence() != y.Fence()+1 {
			b.Errorf("fence %d is shown, of %d after %d", info.Fence, z.Fence(), y.Fence())
		}
		if freed, err := operator.ForceRelease(b.Context(), "name", z.Fence()); !freed || err != nil {
			b.Errorf("by force: %v, %v", freed, err)
		}
		b.ok(operator.Close(b.Context()))
		w, err := b.locks.Attach(b.Context(), ticket, core.WithWait(0)) // as anybody
		b.ok(err)
		b.ok(w.Release(b.Context()))
	})
}
