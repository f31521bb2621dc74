package telemetrytest_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// In all of these the counter of dropped events stands at the 0 that New has given it.
const nothingDropped = "events.dropped{no template} 0"

func TestEveryOutcomeOfAnAcquireIsASeriesOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(b *bench)
		want []string
	}{
		"granted": {
			func(b *bench) { b.acquire(b.locks) },
			[]string{"acquire.duration 1 0s", "held 1"},
		},
		"held": {
			func(b *bench) {
				b.acquire(b.other())
				_, err := b.locks.TryAcquire(b.Context(), "order:42")
				b.is(err, core.ErrHeld)
			},
			[]string{"acquire.duration{error.type=held} 1 0s"},
		},
		"held for the whole wait": {
			func(b *bench) {
				b.acquire(b.other())
				_, err := b.locks.Acquire(b.Context(), "order:42", core.WithWait(3*time.Second))
				b.is(err, core.ErrHeld)
			},
			[]string{"acquire.duration{error.type=held} 1 3s", "waiting 0", "waits 1"},
		},
		"granted after a wait": {
			func(b *bench) {
				x := b.acquire(b.other())
				time.AfterFunc(2*time.Second, func() { _ = x.Release(context.Background()) })
				_, err := b.locks.Acquire(b.Context(), "order:42")
				b.ok(err)
			},
			[]string{"acquire.duration 1 2s", "held 1", "waiting 0", "waits 1"},
		},
		"done": {
			func(b *bench) {
				b.ok(b.acquire(b.other(), core.WithDedup(time.Hour)).Complete(b.Context()))
				_, err := b.locks.TryAcquire(b.Context(), "order:42", core.WithDedup(time.Hour))
				b.is(err, core.ErrDuplicate)
			},
			[]string{"acquire.duration{error.type=duplicate} 1 0s"},
		},
		"unavailable": {
			func(b *bench) {
				b.net.All(lab.Refused)
				_, err := b.locks.TryAcquire(b.Context(), "order:42")
				b.is(err, core.ErrUnavailable)
			},
			[]string{"acquire.duration{error.type=unavailable} 1 0s"},
		},
		"degraded": {
			func(b *bench) {
				b.net.All(lab.Refused)
				b.acquire(b.mayFallBack(), core.OnUnavailable(core.LocalOnly))
			},
			[]string{"acquire.duration 1 0s", "degraded 1", "held 1"},
		},
		"timeout": {
			func(b *bench) {
				b.net.All(lab.RequestLost)
				ctx, cancel := context.WithTimeout(b.Context(), time.Second)
				defer cancel()
				_, err := b.locks.Acquire(ctx, "order:42")
				b.is(err, context.DeadlineExceeded)
			},
			[]string{"acquire.duration{error.type=timeout} 1 1s"},
		},
		"timeout of one who knows why": {
			func(b *bench) {
				b.acquire(b.other())
				ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
				defer cancel()
				_, err := b.locks.Acquire(ctx, "order:42")
				b.is(err, context.DeadlineExceeded)
				b.is(err, core.ErrHeld)
			},
			[]string{"acquire.duration{error.type=held} 1 2s", "waiting 0", "waits 1"},
		},
		"canceled": {
			func(b *bench) {
				ctx, cancel := context.WithCancel(b.Context())
				cancel()
				_, err := b.locks.Acquire(ctx, "order:42")
				b.is(err, context.Canceled)
			},
			[]string{"acquire.duration{error.type=canceled} 1 0s"},
		},
		"closed": {
			func(b *bench) {
				b.ok(b.locks.Close(b.Context()))
				_, err := b.locks.Acquire(b.Context(), "order:42")
				b.is(err, core.ErrClosed)
			},
			[]string{"acquire.duration{error.type=closed} 1 0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				test.do(b)
				b.exports(append(test.want, nothingDropped)...)
			})
		})
	}
}

func TestEveryEndOfALeaseTakesItOutOfHeld(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(b *bench)
		want []string
	}{
		"released": {
			func(b *bench) {
				x := b.acquire(b.locks)
				time.Sleep(2 * time.Second)
				b.ok(x.Release(b.Context()))
			},
			[]string{"hold.duration 1 2s"},
		},
		"completed": {
			func(b *bench) { b.ok(b.acquire(b.locks, core.WithDedup(time.Hour)).Complete(b.Context())) },
			[]string{"hold.duration 1 0s"},
		},
		"renewed": {
			func(b *bench) {
				x := b.acquire(b.locks)
				time.Sleep(4 * time.Second)
				b.ok(x.Release(b.Context()))
			},
			[]string{"hold.duration 1 4s", "renewals 1"},
		},
		"renewed at the second attempt": {
			func(b *bench) {
				b.net.Next(lab.OpRenew, lab.Refused)
				x := b.acquire(b.locks)
				time.Sleep(4 * time.Second) // the next one is due no earlier than that
				b.ok(x.Release(b.Context()))
			},
			[]string{"hold.duration 1 4s", "renewals 1", "renewals{error.type=unavailable} 1"},
		},
		"lost because it expired": {
			func(b *bench) { <-b.acquire(b.locks, core.WithoutRenewal()).Context().Done() },
			[]string{"hold.duration{error.type=lost} 1 10s", "lost{distlock.reason=expired} 1"},
		},
		"lost because it was taken": {
			func(b *bench) {
				x := b.acquire(b.locks, core.WithRenewEvery(time.Second))
				b.ok(b.store.Release(b.Context(), b.net.LastClaim()))
				<-x.Context().Done()
			},
			[]string{
				"hold.duration{error.type=lost} 1 ?s", "lost{distlock.reason=taken} 1",
				"renewals{error.type=lost} 1",
			},
		},
		"lost because nothing answered": {
			func(b *bench) {
				x := b.acquire(b.locks, core.WithRenewEvery(5*time.Second))
				b.net.All(lab.RequestLost, lab.OpRenew)
				<-x.Context().Done()
			},
			[]string{
				"hold.duration{error.type=lost} 1 10s", "lost{distlock.reason=unreachable} 1",
				"renewals{error.type=unavailable} ??",
			},
		},
		"lost because of MaxHold, and released later": {
			func(b *bench) {
				x := b.acquire(b.locks, core.WithMaxHold(2*time.Second))
				<-x.Context().Done()
				time.Sleep(time.Second)
				b.is(x.Release(b.Context()), core.ErrLost)
			},
			[]string{"hold.duration{error.type=lost} 1 2s", "lost{distlock.reason=max-hold} 1"},
		},
		"released, perhaps": {
			func(b *bench) {
				x := b.acquire(b.locks)
				b.net.All(lab.RequestLost, lab.OpRelease)
				b.is(x.Release(b.Context()), core.ErrUnavailable)
			},
			[]string{"hold.duration{error.type=unavailable} 1 2s", "unconfirmed 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				test.do(b)
				b.exports(append(test.want, "acquire.duration 1 0s", "held 0", nothingDropped)...)
			})
		})
	}
}

// leaver is a lock service whose caller goes while it answers.
type leaver struct {
	*memlock.Store
	leave context.CancelFunc
}

func (l leaver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := l.Store.Acquire(ctx, c)
	l.leave()
	return g, err
}

func TestAGrantWhoseCallerHasGoneIsNoLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, leave := context.WithCancel(b.Context())
		b.ok(b.locks.Close(b.Context()))
		b.locks = b.locker(leaver{b.store, leave}, core.WithTemplate(template), b.tel.Option())
		_, err := b.locks.TryAcquire(ctx, "order:42")
		b.is(err, context.Canceled)
		b.exports("acquire.duration{error.type=canceled} 1 0s", nothingDropped)
	})
}

func TestAReentryIsNoSecondLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.ok(b.locks.Do(b.Context(), "order:42", func(ctx context.Context) error {
			return b.locks.Do(ctx, "order:42", func(context.Context) error {
				b.exports("acquire.duration 1 0s", "held 1", nothingDropped)
				return nil
			})
		}))
		b.exports("acquire.duration 1 0s", "held 0", "hold.duration 1 0s", nothingDropped)
	})
}

func TestLockersOfOneTelemetryAddUp(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for name, opts := range map[string][]core.NewOption{"a": {core.WithTemplate(template)}, "b": {core.WithTemplate(template)}, "c": nil} {
			locks := b.locker(b.store, append(opts, b.tel.Option())...)
			_, err := locks.TryAcquire(b.Context(), name)
			b.ok(err)
		}
		b.exports("acquire.duration 2 0s", "acquire.duration{no template} 1 0s", "held 2", "held{no template} 1", nothingDropped)
	})
}
