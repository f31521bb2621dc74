package core_test

import (
	"context"
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
		ctx, cancel := context.WithCancel(b.Context())
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
	virtual(t, func(b *bench) {
		x := b.acquire(b.locker(b.store), "name") // punctual: the first command goes out on the caller's goroutine
		b.store.SetDelay(time.Hour)
		b.took(bound, 0, func() { b.is(x.Release(context.Background()), core.ErrUnavailable) })
		b.store.SetDelay(0)
	})
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
		})
	}
}

func TestALateDuplicateKeepsTheNameForItsMinHold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Next(lab.OpAcquire, lab.ReplyHeldBack)
		x := b.acquire(b.locks, "name", core.WithMinHold(time.Minute)) // by its second command
		b.link.All(lab.Refused, lab.OpRelease)
		b.is(x.Release(b.Context()), core.ErrUnavailable)
		b.link.All(lab.Delivered)
		b.link.Deliver() // the answer to the first one
		time.Sleep(time.Second)
		b.taken(b.other(), "name")
	})
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
