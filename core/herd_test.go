package core_test

import (
	"context"
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
		for how, leave := range map[string]func(ctx context.Context, d time.Duration) (context.Context, []core.Option){
			"by deadline": func(ctx context.Context, d time.Duration) (context.Context, []core.Option) {
				ctx, cancel := context.WithTimeout(ctx, d)
				context.AfterFunc(ctx, cancel)
				return ctx, nil
			},
			"by cancellation": func(ctx context.Context, d time.Duration) (context.Context, []core.Option) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(d, cancel)
				return ctx, nil
			},
			"by budget": func(ctx context.Context, d time.Duration) (context.Context, []core.Option) {
				return ctx, []core.Option{core.WithWait(d.Truncate(time.Millisecond))}
			},
		} {
			virtual(t, func(b *bench) {
				b.link.Delay(trip/2, trip/2)
				holder := b.acquire(b.other(), "name")
				var gone sync.WaitGroup
				for range herd {
					gone.Go(func() {
						d := time.Second + rand.N(10*time.Millisecond)
						ctx, opts := leave(b.Context(), d)
						began := time.Now()
						if x, err := b.locks.Acquire(ctx, "name", opts...); err == nil {
							b.Errorf("granted %v", x)
						} else {
							b.is(err, core.ErrHeld)
						}
						if took := time.Since(began); took < d.Truncate(time.Millisecond) || took > d+50*time.Millisecond {
							b.Errorf("%s: returned after %s, not %s", how, took, d)
						}
					})
				}
				time.Sleep(time.Second - time.Millisecond)
				before := b.commands()
				gone.Wait()
				synctest.Wait()
				time.Sleep(ttl)
				if n := b.commands() - before; n > most {
					b.Errorf("%s, %s a round trip: %d commands", how, trip, n)
				} else {
					b.Logf("%s, %s a round trip: %d commands", how, trip, n)
				}
				b.ok(holder.Release(b.Context()))
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
				first := make(chan *core.Lease)
				go func() {
					x := b.lease(b.locks.Acquire(context.Background(), "name"))
					first <- x
				}()
				errs := make(chan error)
				for range 4 {
					go func() {
						time.Sleep(time.Millisecond)
						_, err := b.locks.Acquire(context.Background(), "name", core.WithWait(answer-time.Millisecond))
						errs <- err
					}()
				}
				x := <-first
				for range 4 {
					b.is(<-errs, core.ErrHeld)
				}
				b.store.SetDelay(0)
				b.ok(x.Release(b.Context()))
			}
		})
	}
}

// Its time is over before it could hear anything: who comes after it would only have to clean up.
func TestWhoEndsBeforeAnAnswerCouldComeAsksNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		const trip = 20 * time.Millisecond
		holder := b.acquire(b.other(), "name")
		b.link.Delay(trip/2, trip/2)
		b.ok(b.acquire(b.locks, "another").Release(b.Context()))
		ending := func(d time.Duration) *call {
			ctx, cancel := context.WithTimeout(b.Context(), d)
			context.AfterFunc(ctx, cancel)
			return b.callWith(ctx, b.locks)
		}
		first := ending(200 * time.Millisecond)
		synctest.Wait()
		second := ending(200*time.Millisecond + trip/2)
		time.Sleep(200*time.Millisecond - 1)
		before := b.link.Calls(lab.OpAcquire)
		began := time.Now()
		b.eventually("both have ended", func() bool { return first.ended() && second.ended() })
		if took := time.Since(began); took > trip/2+time.Millisecond {
			b.Errorf("the second has ended after %s", took)
		}
		time.Sleep(trip)
		b.sent(before, lab.OpAcquire)
		b.ok(holder.Release(b.Context()))
	})
}

func TestBudgetsThatEndWithTheHandOffEndWithHeld(t *testing.T) {
	t.Parallel()
	for range 30 { // who sees what first is left to chance
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name")
			over := make(chan error, 6)
			for range cap(over) {
				go func() {
					y, err := b.locks.Acquire(b.Context(), "name", core.WithWait(3*time.Second)) // more than an attempt takes
					if err == nil {
						err = y.Release(b.Context())
					}
					over <- err
				}()
			}
			time.Sleep(3 * time.Second)
			b.ok(x.Release(b.Context()))
			for range cap(over) {
				if err := <-over; err != nil {
					b.is(err, core.ErrHeld)
				}
			}
		})
	}
}
