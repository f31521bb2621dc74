package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// A caller that has gone does not wait, even where answers were quick so far.
func TestAReleaseInAnEndedContextReturnsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, map[string]func(b *bench, locks *core.Locker) held{
		"one name":      func(b *bench, locks *core.Locker) held { return b.acquire(locks, "one") },
		"several names": func(b *bench, locks *core.Locker) held { return b.all(locks, "a", "b", "c") },
	}, func(b *bench, acquire func(b *bench, locks *core.Locker) held) {
		x := acquire(b, b.locker(b.store))
		b.store.SetDelay(time.Hour)
		ctx, cancel := context.WithCancel(x.Context()) // which ends before the lease does
		cancel()
		b.took(0, 50*time.Millisecond, func() { b.is(x.Release(ctx), core.ErrUnavailable) })
		b.store.SetDelay(0)
	})
}

// Its end comes from the release itself, and is no wish of the caller to go.
func TestAReleaseInTheLeasesOwnContextWaitsForTheAnswer(t *testing.T) {
	t.Parallel()
	each(t, map[string]func(b *bench) func() error{
		"Release": func(b *bench) func() error {
			x := b.acquire(b.locks, "a")
			return func() error { return x.Release(x.Context()) }
		},
		"Detach": func(b *bench) func() error {
			x := b.acquire(b.locks, "b")
			return func() error { return second(x.Detach(x.Context(), keep)) }
		},
		"a set": func(b *bench) func() error {
			s := b.all(b.locks, "c", "d", "e")
			return func() error { return s.Release(s.Context()) }
		},
	}, func(b *bench, acquire func(b *bench) func() error) {
		b.link.Delay(100*time.Millisecond, 100*time.Millisecond)
		release := acquire(b)
		b.took(200*time.Millisecond, 0, func() { b.ok(release()) })
	})
}

func TestAReleaseReturnsByItsBound(t *testing.T) {
	t.Parallel()
	const short = 300 * time.Millisecond
	for want, opts := range map[time.Duration][]core.Option{
		bound: nil, short / 3: {core.WithTTL(short), core.WithMinHold(time.Minute)}, // the backend keeps the name for longer, and nobody trusts that
	} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.locker(b.store), "name", opts...) // punctual: the first command goes out on the caller's goroutine
			b.store.SetDelay(time.Hour)
			b.took(want, 0, func() { b.is(x.Release(context.Background()), core.ErrUnavailable) })
			b.store.SetDelay(0)
			answer := make(chan struct{})
			late := &hooked{Driver: b.store, can: func(can *driver.Capabilities) { can.Punctual = false }, release: func(context.Context, driver.Claim) error {
				<-answer
				return nil
			}}
			y := b.acquire(b.locker(late), "other", opts...)
			b.took(want, 0, func() { b.is(y.Release(context.Background()), core.ErrUnavailable) })
			close(answer)
		})
	}
}

func TestALossIsToldThoughItsReleaseIsNotConfirmed(t *testing.T) {
	t.Parallel()
	for _, left := range []time.Duration{time.Millisecond, bound / 2, time.Minute} { // of the caller's context
		virtual(t, func(b *bench) {
			err := b.locks.Do(b.in(time.Second+left), "name", func(ctx context.Context) error {
				<-ctx.Done()
				b.link.All(lab.RequestLost)
				return nil
			}, core.WithMaxHold(time.Second))
			b.is(err, core.ErrLost)
			b.link.Heal()
			x := b.acquire(b.locks, "other", core.WithMaxHold(time.Second))
			<-x.Context().Done()
			b.link.All(lab.RequestLost)
			err = x.Release(b.in(left))
			b.is(err, core.ErrLost)
			b.isNot(err, context.DeadlineExceeded)
		})
	}
}

func TestAPanicOfTheBackendsClientLeavesTheNameToOthers(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]core.Option{nil, {core.WithShared()}, {core.WithWait(0)}} {
		for _, acquiring := range []bool{true, false} {
			virtual(t, func(b *bench) {
				client := &hooked{Driver: b.store}
				locks := b.locker(client)
				b.ok(locks.Do(b.Context(), "name", noWork)) // it is known to be quick now
				if acquiring {
					client.acquire = func(context.Context, driver.Claim) (driver.Grant, error) {
						client.acquire = nil
						panic("hook")
					}
				} else {
					client.release = func(context.Context, driver.Claim) error {
						client.release = nil
						panic("hook")
					}
				}
				b.panics("hook", func() { _ = locks.Do(b.Context(), "name", noWork, opts...) })
				b.gets(locks.Acquire(b.Context(), "name", core.WithWait(ttl)))
			})
		}
	}
}

const minHold = time.Minute

func TestAnEarlyReleaseLeavesTheNameTakenForTheRestOfMinHold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithMinHold(minHold), core.WithLabel("node-1"))
		time.Sleep(25 * time.Second)
		if held := b.refused(b.other(), "name"); held.Exact || held.RetryAfter > time.Second {
			b.Errorf("of a lease that stands: %+v", held)
		}
		b.ok(x.Release(b.Context()))
		const rest = minHold - 25*time.Second
		for _, l := range []*core.Locker{b.other(), b.locks} {
			if held := b.refused(l, "name"); held.RetryAfter != rest || !held.Exact {
				b.Errorf("%+v", held)
			}
		}
		b.took(rest, 2*time.Millisecond, func() { b.gets(b.other().Acquire(b.Context(), "name")) })
	})
}

var errFull = errors.New("OOM command not allowed")

// A lock service may have no room for a marker.
func TestCompletedWorkWithoutAMarkerIsReleasedAndTheCallerIsTold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		releases, r, dedup := 0, &recorder{}, core.WithDedup(time.Hour)
		full := &hooked{Driver: b.store, release: func(ctx context.Context, c driver.Claim) error {
			releases++
			marks := c.Dedup > 0
			c.Dedup = 0
			if err := b.store.Release(ctx, c); err != nil || !marks {
				return err
			}
			return fmt.Errorf("%w: %w", driver.ErrUnmarked, errFull)
		}}
		locks := b.locker(full, dedup, observing(r.observer()))
		x := b.acquire(locks, "name")
		err := x.Complete(b.Context())
		b.is(err, core.ErrUnavailable, errFull)
		b.isNot(err, core.ErrLost)
		b.says(err, core.ErrUnavailable, "without its dedup marker")
		b.is(x.Err(), core.ErrReleased)
		if releases != 1 {
			b.Errorf("%d releases", releases)
		}
		b.ok(b.acquire(b.locker(full, dedup), "name").Release(b.Context())) // neither held nor done
		r.take()
		b.ok(locks.Do(b.Context(), "name", noWork))
		if told := r.take(); !strings.Contains(told, "unconfirmed") {
			b.Error(told)
		}
	})
}

// crowded returns contexts below x's, so many that x takes long to end them all.
func crowded(b *bench, x *core.Lease) (all []context.Context) {
	for range 20_000 {
		ctx, cancel := context.WithCancel(x.Context())
		b.Cleanup(cancel)
		all = append(all, ctx)
	}
	return all
}

// A lease and the one that has re-entered it end at once: only the last one gives the name back, once, and with all contexts ended.
func TestLeasesThatEndTogetherGiveTheNameBackOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var below []context.Context
		locks := b.locker(&hooked{Driver: b.link, release: func(ctx context.Context, c driver.Claim) error {
			for _, ctx := range below {
				if ctx.Err() == nil {
					b.Error("the name is given back, and a context has not ended")
					break
				}
			}
			return b.link.Release(ctx, c)
		}})
		x := b.acquire(locks, "name")
		y := b.lease(locks.TryAcquire(x.Context(), "name"))
		below = crowded(b, y)
		b.link.Delay(time.Millisecond, time.Millisecond)
		var ends sync.WaitGroup
		inner := b.lease(locks.TryAcquire(y.Context(), "name"))
		crowded(b, inner)
		ends.Go(func() { b.ok(inner.Release(b.Context())) })
		<-inner.Context().Done()
		b.ok(inner.Release(b.Context())) // once the first one knows the result
		ends.Go(func() { b.ok(y.Release(b.Context())) })
		<-y.Context().Done() // and those below it have not ended yet
		for range 10 {
			ends.Go(func() { b.ok(x.Release(b.Context())) })
		}
		b.ok(y.Release(b.Context()))
		ends.Wait()
		b.sent(1, lab.OpRelease)
	})
}

// The same with a hold that has another turn: by then it is that of who waits, and nobody ends it but him.
func TestLeasesThatEndTogetherEndNobodyElses(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x, waiting := b.queue(2)
		y := b.lease(b.locks.TryAcquire(x.Context(), "name"))
		crowded(b, y)
		var ends sync.WaitGroup
		ends.Go(func() { b.ok(y.Release(b.Context())) })
		<-y.Context().Done()
		b.ok(x.Release(b.Context()))
		ends.Wait()
		z := waiting[0].granted()
		if z.Fence() != x.Fence()+1 {
			b.Error("no turn of the same hold")
		}
		b.is(second(b.other().TryAcquire(b.Context(), "name")), core.ErrHeld)
		b.ok(z.Err())
		b.ok(z.Release(b.Context()))
	})
}
