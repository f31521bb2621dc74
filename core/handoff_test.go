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
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

const keep = time.Minute

func (b *bench) detach(x *core.Lease) core.Handoff {
	b.Helper()
	handoff, err := x.Detach(b.Context(), keep)
	b.ok(err)
	return handoff
}

func TestADetachedLeaseGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other := b.other()
		x := b.acquire(b.locks, "name", core.WithLabel("request"))
		work := x.Context()
		handoff := b.detach(x)
		b.is(context.Cause(work), context.Canceled)
		b.is(x.Err(), core.ErrReleased)
		b.ok(x.Release(b.Context())) // as if it had been released
		renewals := b.link.Calls(lab.OpRenew)
		time.Sleep(keep / 2)
		for _, l := range []*core.Locker{b.locks, other, b.other()} {
			if held := b.refused(l, "name"); held.Label != "request" || held.RetryAfter > time.Second {
				b.Errorf("%+v", held)
			}
		}
		y := b.lease(other.Attach(b.Context(), handoff, core.WithWait(0)))
		if y.Fence() <= x.Fence() {
			b.Errorf("fence %d after %d", y.Fence(), x.Fence())
		}
		time.Sleep(keep) // it is renewed, and the hand-off's time counts no more
		b.ok(y.Check(b.Context()))
		b.sent(renewals, lab.OpRenew) // none of a detached lease
		b.ok(y.Release(b.Context()))
		b.free()
	})
}

func TestADetachWithoutAnAnswerLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for fate, want := range map[lab.Fate]error{
		lab.ReplyLost: context.DeadlineExceeded, lab.RequestLost: context.DeadlineExceeded, lab.Refused: core.ErrUnavailable,
	} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name")
			b.link.All(fate, lab.OpRelease)
			handoff, err := x.Detach(b.in(100*time.Millisecond), keep)
			b.is(err, core.ErrUnavailable, want)
			if handoff != (core.Handoff{}) {
				b.Error("a hand-off")
			}
			b.link.Heal()
			time.Sleep(ttl)
			b.free()
		})
	}
}

func TestAnAttachThatFindsTheWorkDoneFreesTheName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other, dedup := b.other(), []core.Option{core.WithDedup(time.Hour), core.WithDedupScope("ship")}
		b.ok(other.Do(b.Context(), "name", noWork, dedup...))
		handoff := b.detach(b.acquire(b.locks, "name"))
		b.is(second(other.Attach(b.Context(), handoff, dedup...)), core.ErrDuplicate)
		synctest.Wait()
		b.free()
	})
}

func TestWhatCannotBeDetachedStands(t *testing.T) {
	t.Parallel()
	type row struct {
		keep time.Duration
		opts []core.Option
	}
	each(t, map[string]row{
		"no time":                    {0, nil},
		"a negative time":            {-1, nil},
		"less than a millisecond":    {time.Microsecond, nil},
		"more than ten years":        {11 * 365 * 24 * time.Hour, nil},
		"a reader":                   {keep, []core.Option{core.WithShared()}},
		"a permit":                   {keep, []core.Option{core.WithLimit(2)}},
		"a name that is kept anyhow": {keep, []core.Option{core.WithMinHold(time.Millisecond)}},
	}, func(b *bench, r row) {
		x := b.acquire(b.locks, "name", r.opts...)
		b.is(second(x.Detach(b.Context(), r.keep)), core.ErrInvalid)
		b.is(x.HandOff(b.Context(), r.keep, func(context.Context, core.Handoff) error { panic("sent") }), core.ErrInvalid)
		b.ok(x.Check(b.Context()))
		b.ok(x.Release(b.Context()))
		time.Sleep(time.Second)
		b.free()
	})
}

func TestAHandOffThatAPanicLeavesUnknownIsCalledBack(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		locks := b.locker(&hooked{Driver: b.store, release: func(ctx context.Context, c driver.Claim) error {
			err := b.store.Release(ctx, c)
			if c.Handoff != "" {
				panic("client")
			}
			return err
		}})
		x := b.acquire(locks, "name")
		b.panics("client", func() { _, _ = x.Detach(b.Context(), keep) })
		time.Sleep(time.Second)
		b.free()
	})
}

func TestDetachNeedsTheOnlyLeaseOfItsNameAndABackendThatCan(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		inner := b.lease(b.locks.Acquire(x.Context(), "name"))
		for _, lease := range []*core.Lease{x, inner} {
			b.is(second(lease.Detach(b.Context(), keep)), core.ErrInvalid)
			b.ok(lease.Err())
		}
		b.ok(inner.Release(b.Context()))
		handoff := b.detach(x)

		plain := b.locker(&hooked{Driver: b.link, can: func(can *driver.Capabilities) { can.Detach = false }})
		b.is(second(plain.Attach(b.Context(), handoff)), core.ErrInvalid)
		y := b.acquire(plain, "other")
		b.is(second(y.Detach(b.Context(), keep)), core.ErrInvalid)
		b.ok(y.Release(b.Context()))
	})
}

func TestDetachOfALeaseThatIsOverSaysSo(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		b.is(second(x.Detach(ctx, keep)), context.Canceled)
		b.ok(x.Err()) // it stands
		b.ok(x.Release(b.Context()))
		b.is(second(x.Detach(b.Context(), keep)), core.ErrReleased)

		x = b.acquire(b.locks, "name")
		b.ok(b.store.Release(b.Context(), b.link.LastClaim()))
		b.is(second(x.Detach(b.Context(), keep)), core.ErrLost)
		b.free()

		x = b.acquire(b.locks, "name")
		b.detach(x)
		b.is(second(x.Detach(b.Context(), keep)), core.ErrReleased)

		x = b.acquire(b.locks, "other", core.WithoutRenewal())
		<-x.Context().Done()
		b.is(second(x.Detach(x.Context(), keep)), core.ErrLost) // which is why that context has ended

		x = b.acquire(b.locks, "third")
		ctx = &asked{b.Context(), 0, func(int) { _ = x.Release(b.Context()) }} // meanwhile
		b.is(second(x.Detach(ctx, keep)), core.ErrReleased)
	})
}

func TestAHandoffIsForAnExclusiveLeaseOfItsName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		handoff := b.detach(b.acquire(b.locks, "name"))
		for _, o := range []core.Option{core.WithShared(), core.WithLimit(2)} {
			b.is(second(b.locks.Attach(b.Context(), handoff, o)), core.ErrInvalid)
		}
		b.is(second(b.locks.Attach(b.Context(), core.Handoff{})), core.ErrInvalid)
		b.is(b.locks.DoAttached(b.Context(), core.Handoff{}, noWork), core.ErrInvalid)
		b.is(b.locks.DoAttached(b.Context(), handoff, nil), core.ErrInvalid)
		b.link.All(lab.Refused)
		b.is(second(b.locks.Attach(b.Context(), handoff, core.WithWait(0))), core.ErrUnavailable)
		b.link.Heal()
		synctest.Wait()
		b.taken(b.other(), "name") // it can still be used
		b.ok(b.locks.DoAttached(b.Context(), handoff, noWork))
		b.free()
	})
}

func TestWorkThatIsHandedOverGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(b.Context(), key{}, "value"), time.Hour)
		defer cancel()
		sent := make(chan core.Handoff, 1)
		b.ok(b.locks.Do(ctx, "name", func(work context.Context) error {
			x, _ := core.FromContext(work)
			err := x.HandOff(work, keep, func(beyond context.Context, handoff core.Handoff) error {
				b.ok(beyond.Err())
				deadline, _ := beyond.Deadline()
				want, _ := ctx.Deadline()
				if beyond.Value(key{}) != "value" || !deadline.Equal(want) {
					b.Errorf("value %v, deadline %s", beyond.Value(key{}), deadline)
				}
				sent <- handoff
				return nil
			})
			b.ok(err)
			b.is(work.Err(), context.Canceled)
			return err
		}))
		b.taken(b.other(), "name")
		y, err := b.other().Attach(b.Context(), <-sent)
		b.ok(err)
		b.ok(y.Release(b.Context()))
	})
}

func TestWhatCouldNotBeHandedOverIsFree(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		full := errors.New("the queue is full")
		b.is(b.acquire(b.locks, "name").HandOff(b.Context(), keep, func(context.Context, core.Handoff) error { return full }), full)
		b.free()

		x := b.acquire(b.locks, "name")
		b.panics("send", func() {
			_ = x.HandOff(b.Context(), keep, func(context.Context, core.Handoff) error { panic("send") })
		})
		b.free()

		var y *core.Lease // of somebody who was quicker than the error
		b.is(b.acquire(b.locks, "name").HandOff(b.Context(), keep, func(_ context.Context, handoff core.Handoff) error {
			y = b.lease(b.other().Attach(b.Context(), handoff))
			return full
		}), full)
		b.ok(y.Check(b.Context()))
		b.ok(y.Release(b.Context()))

		x = b.acquire(b.locks, "name")
		b.is(x.HandOff(b.Context(), keep, nil), core.ErrInvalid)
		b.ok(x.Err())
	})
}

func TestWhatIsHandedOverEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		err := b.locks.Do(ctx, "name", func(work context.Context) error {
			x, _ := core.FromContext(work)
			return x.HandOff(work, keep, func(beyond context.Context, _ core.Handoff) error {
				cancel()
				<-beyond.Done()
				return context.Cause(beyond)
			})
		})
		b.is(err, context.Canceled)
		synctest.Wait()
		b.free()
	})
}

func noWork(context.Context) error { return nil }

func TestAHandoffTravelsAsTextAndPrintsAsItsName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		secret := b.detach(b.acquire(b.locks, "name"))
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			if got := fmt.Sprintf(verb+verb, secret, &secret); got != `handoff("name")handoff("name")` {
				b.Errorf("%s: %s", verb, got)
			}
		}
		var out strings.Builder
		slog.New(slog.NewJSONHandler(&out, nil)).Info("it", "handoff", secret)
		text, err := json.Marshal(map[string]any{"handoff": secret})
		if !strings.Contains(out.String(), `handoff(\"name\")`) || err == nil {
			b.Errorf("logged %s, marshalled %s", &out, text)
		}
		for _, name := range []string{"a", "order:42", "bücher:ß", strings.Repeat("x", 200)} {
			handoff := b.detach(b.acquire(b.locks, name))
			text := handoff.Encode()
			if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(text) > 290 {
				b.Errorf("%q", text)
			}
			read, err := core.ParseHandoff(text)
			if err != nil || read != handoff {
				b.Errorf("%v, %v", read, err)
			}
			y, err := b.other().Attach(b.Context(), read, core.WithWait(0))
			b.ok(err)
			b.ok(y.Release(b.Context()))
		}
	})
}

func FuzzAHandoffIsReadAsWrittenOrNotAtAll(f *testing.F) {
	const text = "AQAAAAAAAAAAAAAAAAAAAABuYW1l"
	for _, s := range []string{
		text, "", "0", text[:20], text[:22], "B" + text[1:], text + "=", text + "\n", text + "Cg", core.Handoff{}.Encode(),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		handoff, err := core.ParseHandoff(s)
		if err != nil {
			if !errors.Is(err, core.ErrInvalid) || handoff != (core.Handoff{}) || len(s) > 9 && strings.Contains(err.Error(), s) {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if handoff.Encode() != s || handoff.Name() == "" {
			t.Errorf("%q is read as %v and written as %q", s, handoff, handoff.Encode())
		}
	})
}

func TestDrainAndCloseAwaitAHandoffThatIsBeingSent(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		down, send, sent := errors.New("the task queue is down"), make(chan struct{}), 0
		done := b.begin(func() error {
			return b.locks.Do(b.Context(), "name", func(ctx context.Context) error {
				x, _ := core.FromContext(ctx)
				return x.HandOff(ctx, time.Minute, func(context.Context, core.Handoff) error { <-send; return down })
			})
		})
		stopped := b.begin(func() error {
			b.ok(b.locks.Drain(b.Context()))
			err := b.locks.Close(b.Context())
			sent = b.commands()
			return err
		})
		close(send)
		b.is(<-done, down)
		b.ok(<-stopped)
		b.sent(sent) // none after Close
		b.free()     // called back
	})
}
