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
)

func TestTheWaitBudgetEndsWithHeld(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "name", core.WithLabel("them"))
		b.link.Drop(lab.OpWait) // only the attempt of the first one is answered
		var wg sync.WaitGroup
		for i := range 5 { // the first one asks, the others stand in line behind it
			wg.Go(func() {
				budget := time.Duration(i) * time.Second / 5
				b.took(budget, 0, func() {
					err := second(b.locks.Acquire(b.Context(), "name", core.WithWait(budget)))
					b.isNot(err, core.ErrUnavailable, context.DeadlineExceeded)
					if held := b.heldBy(err); held.Label != "them" || held.RetryAfter <= 0 || held.RetryAfter > time.Second {
						b.Errorf("%#v", held)
					}
				})
			})
		}
		wg.Wait()
	})
}

func TestWhoWaitsBehindATryKnowsWhatThatWasTold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "name", core.WithLabel("them"))
		b.link.Delay(time.Millisecond, 0)
		b.link.Drop(lab.OpWait)
		try := b.begin(func() error { return second(b.locks.TryAcquire(b.Context(), "name")) })
		synctest.Wait()
		if held := b.heldBy(second(b.locks.Acquire(b.Context(), "name", core.WithWait(time.Second)))); held.Label != "them" {
			b.Errorf("%#v", held)
		}
		b.is(<-try, core.ErrHeld)
	})
}

func TestTheEndOfTheContextIsJoinedWithWhatWasKnown(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "name")
		ctx := b.in(time.Second)
		ends := func(ctx context.Context, after time.Duration, end, known, unknown error) {
			b.Helper()
			b.took(after, 0, func() {
				err := second(b.locks.Acquire(ctx, "name"))
				b.is(err, end, known)
				b.isNot(err, unknown)
				kind := err.(interface{ ErrorType() string }).ErrorType() //nolint:forcetypeassert // all of them have one
				if kind != map[error]string{context.DeadlineExceeded: "timeout", context.Canceled: "canceled"}[end] {
					b.Errorf("%v is of the type %s", err, kind)
				}
			})
			synctest.Wait() // nobody of this process asks any more
		}
		ends(ctx, time.Second, context.DeadlineExceeded, core.ErrHeld, core.ErrUnavailable)
		ends(ctx, 0, context.DeadlineExceeded, core.ErrUnavailable, core.ErrHeld)
		b.link.All(lab.RequestLost)
		canceled, cancel := context.WithCancel(b.Context())
		time.AfterFunc(time.Second/2, cancel)
		ends(canceled, time.Second/2, context.Canceled, core.ErrUnavailable, core.ErrHeld)
		quick := b.locker(b.store) // its call waits for the answer, which comes when the caller has left
		b.taken(quick, "name")
		b.store.SetDelay(20 * time.Millisecond)
		canceled, cancel = context.WithCancel(b.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		b.is(second(quick.TryAcquire(canceled, "name")), context.Canceled, core.ErrHeld)
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
					err := second(b.locks.Acquire(b.Context(), "name"))
					b.is(err, core.ErrUnavailable)
					b.isNot(err, core.ErrHeld, context.DeadlineExceeded, context.Canceled)
				})
			})
		}
		synctest.Wait()
		if fate == lab.Refused { // whoever waits behind them, and for less, knows what they were told
			b.took(time.Second, 0, func() {
				b.is(second(b.locks.Acquire(b.Context(), "name", core.WithWait(time.Second))), core.ErrUnavailable, driver.ErrNotSent)
			})
		}
		wg.Wait()
		b.link.Heal()
		b.acquire(b.other(), "name")
		told := b.call(b.locks) // that it is held, and then nothing more
		b.link.All(fate)
		<-told.over
		b.is(told.err, core.ErrUnavailable)
		b.isNot(told.err, core.ErrHeld)
	})
}

// The round that the first one leaves is broken off, which says nothing of the service to who comes before it has ended.
func TestARoundThatIsBrokenOffIsNoSilence(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "name")
		rounds := 0
		locks := b.locker(&hooked{
			Driver: b.store, can: func(can *driver.Capabilities) { can.Punctual = false },
			wait: func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if rounds++; rounds > 1 {
					return b.store.Wait(ctx, c)
				}
				<-ctx.Done()
				time.Sleep(20 * time.Millisecond)
				return driver.Grant{}, ctx.Err()
			},
		})
		b.is(second(locks.Acquire(b.in(time.Second/2), "name")), core.ErrHeld)
		err := second(locks.Acquire(b.Context(), "name", core.WithWait(30*time.Millisecond)))
		b.is(err, core.ErrHeld)
		b.isNot(err, core.ErrUnavailable)
	})
}

func TestAGrantForACallerWhoHasLeftIsGivenBack(t *testing.T) {
	t.Parallel()
	each(t, map[string]lab.Fate{"it was executed": lab.ReplyHeldBack, "it is executed later": lab.HeldBack}, func(b *bench, fate lab.Fate) {
		b.link.Next(lab.OpAcquire, fate) // a client that does not look at ctx
		b.took(ttl/10, 0, func() {
			b.is(second(b.locks.Acquire(b.in(ttl/10), "name")), context.DeadlineExceeded, core.ErrUnavailable)
		})
		if fate == lab.HeldBack {
			b.link.Deliver()
		}
		b.took(0, 10*time.Millisecond, func() { b.gets(b.other().Acquire(b.Context(), "name")) })
	})
}

func TestATokenIsNeverUsedForTwoGrants(t *testing.T) {
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
			b.is(second(b.locks.AcquireAll(b.Context(), []string{"a", name})), core.ErrInvalid)
			b.is(b.locks.Do(b.Context(), name, func(context.Context) error { panic("ran") }), core.ErrInvalid)
		}
		b.is(second(b.locks.AcquireAll(b.Context(), nil)), core.ErrInvalid)
		b.is(second(b.locks.AcquireAll(b.Context(), []string{"a", "b"}, core.WithTTL(1))), core.ErrInvalid)
		b.sent(0)
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
	each(t, map[string]bool{"granted": true, "lost": false}, func(b *bench, granted bool) {
		b.link.Next(lab.OpAcquire, lab.HeldBack, lab.RequestLost)
		first := b.begin(func() error { return second(b.locks.TryAcquire(b.Context(), "name")) })
		next := b.begin(func() error { // is less patient: its time ends before that of the first one
			return second(b.locks.Acquire(b.Context(), "name", core.WithWait(10*time.Millisecond), core.WithTTL(ttl/2)))
		})
		time.Sleep(100 * time.Millisecond)
		want, not := core.ErrUnavailable, core.ErrHeld
		if granted {
			want, not = not, want
			b.link.Deliver()
			b.ok(<-first)
		}
		err := <-next
		b.is(err, want)
		b.isNot(err, not)
		time.Sleep(ttl)
	})
}

// The first grant comes when most of its time is over, as after a pause of the process.
func TestAGrantThatIsNearlyOverIsGivenBackAndAskedForAgain(t *testing.T) {
	t.Parallel()
	each(t, map[string]bool{"by an attempt": false, "by a wait": true}, func(b *bench, waits bool) {
		slept := false
		sleeps := func(grant func(context.Context, driver.Claim) (driver.Grant, error)) func(context.Context, driver.Claim) (driver.Grant, error) {
			return func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
				asked := time.Now()
				g, err := grant(ctx, c)
				g.Asked = asked
				if err == nil && !slept {
					slept = true
					time.Sleep(ttl * 3 / 4)
				}
				return g, err
			}
		}
		locks := b.locker(&hooked{Driver: b.store, acquire: sleeps(b.store.Acquire), wait: sleeps(b.store.Wait)})
		if waits {
			holder := b.acquire(b.locks, "name")
			time.AfterFunc(time.Second/2, func() { b.ok(holder.Release(context.Background())) })
		}
		x := b.lease(locks.Acquire(context.Background(), "name")) // one that cannot be cancelled
		if left := time.Until(x.ValidUntil()); left < ttl/2 || !slept {
			b.Errorf("granted with %s left", left)
		}
		b.ok(x.Release(b.Context()))
	})
}

// Many ask at once while somebody else has the name: they do not ask one after the other.
func TestTriesThatComeAtOnceDoNotAskOneAfterTheOther(t *testing.T) {
	t.Parallel()
	dedup := []core.Option{core.WithDedup(time.Hour), core.WithDedupScope("pay")}
	type row struct {
		opts    []core.Option
		prepare func(b *bench)
		want    error
	}
	each(t, map[string]row{
		"held": {prepare: func(b *bench) { b.acquire(b.other(), "name") }, want: core.ErrHeld},
		"done": {opts: dedup, prepare: func(b *bench) { b.ok(b.other().Do(b.Context(), "name", noWork, dedup...)) }, want: core.ErrDuplicate},
	}, func(b *bench, r row) {
		r.prepare(b)
		b.link.Delay(5*time.Millisecond, 5*time.Millisecond)
		var all sync.WaitGroup
		b.took(20*time.Millisecond, 0, func() {
			for range 1000 {
				all.Go(func() { b.is(second(b.locks.TryAcquire(b.Context(), "name", r.opts...)), r.want) })
				time.Sleep(10 * time.Microsecond)
			}
			all.Wait()
		})
		b.sent(2, lab.OpAcquire)
	})
}

// Whoever has watched an attempt asks for what is left of its own time.
func TestATryBesideAnAttemptKeepsItsBound(t *testing.T) {
	t.Parallel()
	const late = bound - 50*time.Millisecond
	type row struct{ leaves, begins, took time.Duration } // the first one's caller; the second one
	each(t, map[string]row{
		"the first was as patient": {leaves: time.Hour, begins: late, took: bound - late},
		"its caller leaves soon":   {leaves: bound / 4, begins: bound / 8, took: bound},
		"its caller leaves late":   {leaves: late, begins: bound / 8, took: bound},
	}, func(b *bench, r row) {
		b.link.All(lab.RequestLost)
		ctx := b.in(r.leaves)
		first := b.begin(func() error { return second(b.locks.TryAcquire(ctx, "name")) })
		time.Sleep(r.begins)
		b.took(r.took, 0, func() { b.is(second(b.locks.TryAcquire(b.Context(), "name")), core.ErrUnavailable) })
		b.is(<-first, core.ErrUnavailable)
	})
}
