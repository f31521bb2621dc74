package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// The contexts of all who wait end within 10 ms. None of them is to ask the backend, and to clean
// up behind itself, only because those before it have gone.
func TestAHerdThatLeavesCostsNextToNothing(t *testing.T) {
	t.Parallel()
	const herd, most = 1000, 10
	for _, trip := range []time.Duration{0, 100 * time.Microsecond, 5 * time.Millisecond} {
		for how, leave := range map[string]func(b *bench, d time.Duration) (context.Context, []core.Option){
			"by deadline": func(b *bench, d time.Duration) (context.Context, []core.Option) { return b.in(d), nil },
			"by cancellation": func(b *bench, d time.Duration) (context.Context, []core.Option) {
				ctx, cancel := context.WithCancel(b.Context())
				time.AfterFunc(d, cancel)
				return ctx, nil
			},
			"by budget": func(b *bench, d time.Duration) (context.Context, []core.Option) {
				return b.Context(), []core.Option{core.WithWait(d.Truncate(time.Millisecond))}
			},
		} {
			virtual(t, func(b *bench) {
				b.link.Delay(trip/2, trip/2)
				b.acquire(b.other(), "name")
				var gone sync.WaitGroup
				for range herd {
					gone.Go(func() {
						d := time.Second + rand.N(10*time.Millisecond)
						b.took(d.Truncate(time.Millisecond), 50*time.Millisecond, func() {
							ctx, opts := leave(b, d)
							b.is(second(b.locks.Acquire(ctx, "name", opts...)), core.ErrHeld)
						})
					})
				}
				time.Sleep(time.Second - time.Millisecond)
				before := b.commands()
				gone.Wait()
				synctest.Wait()
				time.Sleep(ttl)
				if n := b.commands() - before; n > most {
					b.Errorf("%s, %s a round trip: %d commands", how, trip, n)
				}
			})
		}
	}
}

func TestABudgetThatEndsTogetherWithAnotherCallsAttemptIsToldItsOutcome(t *testing.T) {
	t.Parallel()
	for range 20 {
		virtual(t, func(b *bench) {
			for range 200 {
				const answer = 10 * time.Millisecond
				b.store.SetDelay(answer)
				first := b.goes(b.Context(), func(context.Context) (*core.Lease, error) { return b.locks.Acquire(context.Background(), "name") })
				var others sync.WaitGroup
				for range 4 {
					others.Go(func() {
						time.Sleep(time.Millisecond)
						b.is(second(b.locks.Acquire(context.Background(), "name", core.WithWait(answer-time.Millisecond))), core.ErrHeld)
					})
				}
				others.Wait()
				b.store.SetDelay(0)
				b.ok(first.granted().Release(b.Context()))
			}
		})
	}
}

// Its time is over before it could hear anything: who comes after it would only have to clean up.
func TestWhoEndsBeforeAnAnswerCouldComeAsksNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		const trip = 20 * time.Millisecond
		b.acquire(b.other(), "name")
		b.link.Delay(trip/2, trip/2)
		b.ok(b.acquire(b.locks, "another").Release(b.Context()))
		first := b.callWith(b.in(200*time.Millisecond), b.locks)
		second := b.callWith(b.in(200*time.Millisecond+trip/2), b.locks)
		time.Sleep(200*time.Millisecond - 1)
		before := b.link.Calls(lab.OpAcquire)
		b.took(0, trip/2+time.Millisecond, func() {
			<-first.over
			<-second.over
		})
		time.Sleep(trip)
		b.sent(before, lab.OpAcquire) // by one who has half the time that an answer takes
	})
}

func TestBudgetsThatEndWithTheHandOffEndWithHeld(t *testing.T) {
	t.Parallel()
	for range 30 { // who sees what first is left to chance
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name")
			var all sync.WaitGroup
			for range 6 {
				all.Go(func() { // with more than an attempt takes
					if err := b.locks.Do(b.Context(), "name", noWork, core.WithWait(3*time.Second)); err != nil {
						b.is(err, core.ErrHeld)
					}
				})
			}
			time.Sleep(3 * time.Second)
			b.ok(x.Release(b.Context()))
			all.Wait()
		})
	}
}

func TestAHeldErrorSaysThatThisProcessHasTheName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
			time.Sleep(3 * time.Second)
			asked := b.commands(lab.OpAcquire)
			for _, err := range []error{
				second(b.locks.TryAcquire(context.Background(), "a")),
				second(b.locks.TryAcquire(context.Background(), "a", core.WithLimit(1))), // which is exclusive, too
				b.locks.Do(context.Background(), "a", noWork, core.WithWait(time.Second)),
				b.locks.Do(b.in(time.Second), "a", noWork),
			} {
				if held := b.heldBy(err); !held.Here || held.HeldFor < 3*time.Second || held.Label != "me" || held.Name != "a" {
					b.Errorf("%+v", held)
				}
			}
			b.sent(asked, lab.OpAcquire) // the process knows it by itself
			inner := b.lease(b.locks.TryAcquire(ctx, "a"))
			for _, err := range []error{
				second(b.locks.TryAcquire(ctx, "a")), // a sibling has passed on the context
				second(b.locks.TryAcquire(ctx, "a", core.WithoutReentry())),
				second(b.other().TryAcquire(context.Background(), "a")), // another process has not
			} {
				if held := b.heldBy(err); held.Here {
					b.Errorf("%+v", held)
				}
			}
			return inner.Release(ctx)
		}, core.WithLabel("me")))
		err := fmt.Sprint(&core.HeldError{Name: "a"}, &core.HeldError{Name: "a", Label: "me", Here: true, HeldFor: 3 * time.Second})
		if want := `holdfast: "a" is held by another owner holdfast: "a" is held by "me", in this process for 3s; ` +
			`inside its work, pass on the context of the lease, or use AcquireAll`; err != want {
			b.Errorf("%q", err)
		}
	})
}

// Both came while the holder was still asking. He has left as their time ends, and the service has said nothing since.
func TestACallThatThisProcessKeptWaitingIsToldThatTheNameWasHeld(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(time.Millisecond, time.Millisecond)
		work := b.begin(func() error {
			return b.locks.Do(b.Context(), "a", func(context.Context) error { time.Sleep(5 * time.Second); return nil })
		})
		b.link.Drop(lab.OpWait)
		const life = 5100 * time.Millisecond
		budget := b.begin(func() error { return second(b.locks.Acquire(b.Context(), "a", core.WithWait(life))) })
		deadline := b.begin(func() error { return second(b.locks.Acquire(b.in(life), "a")) })
		b.ok(<-work)
		for _, err := range []error{<-budget, <-deadline} {
			b.is(err, core.ErrHeld)
			b.isNot(err, core.ErrUnavailable)
		}
	})
}
