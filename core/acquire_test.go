package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestAProcessThatHoldsTheNameAsksNobody(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithLabel("me"))
		asked := b.link.Calls(lab.OpAcquire)
		_, err := b.locks.TryAcquire(b.Context(), "name")
		b.is(err, core.ErrHeld)
		if held, ok := errors.AsType[*core.HeldError](err); !ok || held.Label != "me" || held.Name != "name" {
			b.Errorf("%#v", err)
		}
		ctx := b.in(time.Minute)
		b.is(second(b.locks.Acquire(ctx, "name")), core.ErrHeld, context.DeadlineExceeded)
		b.sent(asked, lab.OpAcquire)
		b.ok(x.Release(b.Context()))
	})
}

func TestTheWaitBudgetEndsWithHeld(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "name", core.WithLabel("them"))
		var wg sync.WaitGroup
		for i := range 5 { // the first one asks, the others stand in line behind it
			wg.Go(func() {
				budget := time.Duration(i) * time.Second
				b.took(budget, 0, func() {
					_, err := b.locks.Acquire(b.Context(), "name", core.WithWait(budget))
					b.is(err, core.ErrHeld)
					b.isNot(err, core.ErrUnavailable, context.DeadlineExceeded)
					held, ok := errors.AsType[*core.HeldError](err)
					if !ok || held.Label != "them" || held.RetryAfter <= 0 || held.RetryAfter > time.Second {
						b.Errorf("%#v", err)
					}
				})
			})
		}
		wg.Wait()
	})
}

func TestTheEndOfTheContextIsJoinedWithWhatWasKnown(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.other(), "name")
		ctx := b.in(time.Second)
		b.took(time.Second, 0, func() {
			_, err := b.locks.Acquire(ctx, "name")
			b.is(err, context.DeadlineExceeded, core.ErrHeld)
			b.isNot(err, core.ErrUnavailable)
		})
		synctest.Wait() // nobody of this process asks any more
		_, err := b.locks.Acquire(ctx, "name")
		b.is(err, context.DeadlineExceeded, core.ErrUnavailable)
		b.isNot(err, core.ErrHeld)

		b.link.All(lab.RequestLost)
		canceled, cancel := context.WithCancel(b.Context())
		time.AfterFunc(time.Second/2, cancel)
		b.took(time.Second/2, 0, func() {
			_, err := b.locks.Acquire(canceled, "name")
			b.is(err, context.Canceled, core.ErrUnavailable)
			b.isNot(err, core.ErrHeld)
		})
		b.link.All(lab.Delivered)
		b.ok(x.Release(b.Context()))
	})
}

func TestAWaitingAcquireGivesUpAfterATTLWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	each(t, map[string]lab.Fate{"silence": lab.RequestLost, "errors": lab.Refused}, func(b *bench, fate lab.Fate) {
		b.link.All(fate)
		var wg sync.WaitGroup
		for range 10 { // not one after the other
			wg.Go(func() {
				b.took(ttl, bound+time.Second, func() {
					_, err := b.locks.Acquire(b.Context(), "name")
					b.is(err, core.ErrUnavailable)
					b.isNot(err, core.ErrHeld, context.DeadlineExceeded, context.Canceled)
				})
			})
		}
		wg.Wait()
	})
}

func TestTryAcquireBesideAnAttemptTakesItsOutcome(t *testing.T) {
	t.Parallel()
	type row struct {
		first, second []core.Option
		prepare       func(b *bench)
		end           func(b *bench) // of the attempt under way
		want          error          // nil: it gets the lease by an attempt of its own
	}
	dedup := []core.Option{core.WithDedup(time.Hour), core.WithDedupScope("pay")}
	deliver := func(b *bench) { b.link.Deliver() }
	rows := map[string]row{
		"granted": {end: deliver, want: core.ErrHeld},
		"held": {end: deliver, want: core.ErrHeld, prepare: func(b *bench) {
			b.acquire(b.other(), "name")
		}},
		"done, for who asks":         {end: deliver, want: core.ErrDuplicate, first: dedup, second: dedup, prepare: complete},
		"done, for who does not ask": {end: deliver, first: dedup, prepare: complete},
		"cancelled":                  {end: func(*bench) {}},
	}
	for what, row := range rows {
		t.Run(what, func(t *testing.T) {
			virtual(t, func(b *bench) {
				if row.prepare != nil {
					row.prepare(b)
				}
				ctx, cancel := context.WithCancel(b.Context())
				b.link.Next(lab.OpAcquire, lab.HeldBack)
				first := make(chan struct{})
				go func() {
					defer close(first)
					_, _ = b.locks.TryAcquire(ctx, "name", row.first...) // the row says how it ends
				}()
				synctest.Wait()
				second := b.begin(func() error { return second(b.locks.TryAcquire(b.Context(), "name", row.second...)) })
				row.end(b)
				synctest.Wait()
				cancel()
				<-first
				b.is(<-second, row.want)
			})
		})
	}
}

func complete(b *bench) {
	b.Helper()
	b.ok(b.other().Do(b.Context(), "name", noWork,
		core.WithDedup(time.Hour), core.WithDedupScope("pay")))
}

func TestAGrantForACallerWhoHasLeftIsGivenBack(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(0, 300*time.Millisecond)
		ctx := b.in(200 * time.Millisecond)
		b.took(200*time.Millisecond, 0, func() {
			b.is(second(b.locks.Acquire(ctx, "name")), context.DeadlineExceeded)
		})
		b.link.Delay(0, 0)
		b.took(0, time.Second, func() {
			x, err := b.other().Acquire(b.Context(), "name")
			b.ok(err)
			b.ok(x.Release(b.Context()))
		})
	})
}

func TestATokenIsNeverUsedForTwoTenures(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		seen := make(map[string]bool)
		for range 50 {
			b.link.Next(lab.OpAcquire, lab.ReplyReset)
			x := b.acquire(b.locks, "name")
			token := b.link.LastClaim().Token
			if seen[token] || len(token) != 22 {
				b.Fatalf("token of %d bytes, seen before: %v", len(token), seen[token])
			}
			seen[token] = true
			b.ok(x.Release(b.Context()))
		}
	})
}

func TestInvalidNamesAreRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for _, name := range []string{"", " ", "a b", "a{b", "a}b", "a\x00", "a\n", "a\u0085", "a\xff", strings.Repeat("x", 201)} {
			b.is(second(b.locks.Acquire(b.Context(), name)), core.ErrInvalid)
			b.is(b.locks.Do(b.Context(), name, func(context.Context) error { panic("ran") }), core.ErrInvalid)
		}
		b.sent(0, lab.OpAcquire)
	})
}

func TestEveryErrorNamesItsType(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		core.ErrHeld: "held", core.ErrUnavailable: "unavailable", core.ErrLost: "lost",
		core.ErrDuplicate: "duplicate", core.ErrClosed: "closed", core.ErrInvalid: "invalid",
		&core.HeldError{Name: "n"}: "held", &core.LostError{Name: "n"}: "lost", &core.DuplicateError{Name: "n"}: "duplicate",
	} {
		typed, ok := err.(interface{ ErrorType() string })
		if !ok || typed.ErrorType() != want {
			t.Errorf("%T: no type %q", err, want)
		}
		if !strings.HasPrefix(err.Error(), "holdfast: ") {
			t.Errorf("%q does not say whose error it is", err)
		}
		if wrapped := fmt.Errorf("more: %w", err); !errors.Is(wrapped, err) {
			t.Errorf("%q is lost in wrapping", err)
		}
	}
}

func TestABudgetThatEndsBeforeTheFirstAnswerEndsWithThatAnswer(t *testing.T) {
	t.Parallel()
	each(t, map[string]error{"granted": core.ErrHeld, "lost": core.ErrUnavailable}, func(b *bench, want error) {
		b.link.Next(lab.OpAcquire, lab.HeldBack, lab.RequestLost)
		go func() {
			x, err := b.locks.TryAcquire(b.Context(), "name")
			if err == nil {
				time.Sleep(time.Second)
				err = x.Release(b.Context())
			}
			if (err == nil) != (want == core.ErrHeld) { //nolint:errorlint // the row
				b.Error(err)
			}
		}()
		synctest.Wait()
		second := b.begin(func() error { return second(b.locks.Acquire(b.Context(), "name", core.WithWait(10*time.Millisecond))) })
		time.Sleep(100 * time.Millisecond)
		if want == core.ErrHeld { //nolint:errorlint // the row
			b.link.Deliver()
		}
		err := <-second
		b.is(err, want)
		if want == core.ErrHeld { //nolint:errorlint // the row
			b.isNot(err, core.ErrUnavailable)
		}
		time.Sleep(ttl)
	})
}

// sleepy is a backend whose first grant comes when most of its time is over, as after a
// pause of the process.
type sleepy struct {
	*memlock.Store
	in    string // the command that it is the grant of
	slept bool
}

func (s *sleepy) sleep(in string, g driver.Grant, err error) (driver.Grant, error) {
	if err == nil && s.in == in && !s.slept {
		s.slept = true
		time.Sleep(ttl * 3 / 4)
	}
	return g, err
}

func (s *sleepy) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := s.Store.Acquire(ctx, c)
	return s.sleep("acquire", g, err)
}

func (s *sleepy) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	asked := time.Now()
	g, err := s.Store.Wait(ctx, c)
	g.Asked = asked
	return s.sleep("wait", g, err)
}

func TestAGrantThatIsNearlyOverIsGivenBackAndAskedForAgain(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"acquire", "wait"} {
		virtual(t, func(b *bench) {
			store := &sleepy{Store: b.store, in: in}
			locks := b.locker(store)
			holder := b.acquire(b.locks, "name")
			if in == "acquire" {
				b.ok(holder.Release(b.Context()))
			} else {
				time.AfterFunc(time.Second/2, func() { b.ok(holder.Release(context.Background())) })
			}
			x := b.lease(locks.Acquire(context.Background(), "name")) // one that cannot be cancelled
			if left := time.Until(x.ValidUntil()); left < ttl/2 || !store.slept {
				b.Errorf("%s: granted with %s left", in, left)
			}
			b.ok(x.Release(b.Context()))
		})
	}
}
