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

// What a call or a lease comes to is a series of its own, and up to two spans of the caller's trace. They have failed only if
// something went wrong.
func TestEveryOutcomeIsASeriesAndASpan(t *testing.T) {
	t.Parallel()
	type outcome struct {
		do             func(b *bench, ctx context.Context)
		metrics, spans []string
	}
	acquires := map[string]outcome{
		"granted": {
			func(b *bench, ctx context.Context) { b.acquireIn(ctx) },
			[]string{"acquire.duration 1 0s", "held 1"}, []string{"acquire 0s-0s fence"},
		},
		"held": {
			func(b *bench, ctx context.Context) {
				b.acquire(b.other())
				_, err := b.locks.TryAcquire(ctx, "order:42")
				b.is(err, core.ErrHeld)
			},
			[]string{"acquire.duration{error.type=held} 1 0s"}, []string{"acquire 0s-0s error.type=held"},
		},
		"held for the whole wait": {
			func(b *bench, ctx context.Context) {
				b.acquire(b.other())
				_, err := b.locks.Acquire(ctx, "order:42", core.WithWait(3*time.Second))
				b.is(err, core.ErrHeld)
			},
			[]string{"acquire.duration{error.type=held} 1 3s", "waiting 0", "waits 1"}, []string{"acquire 0s-3s error.type=held"},
		},
		"granted after a wait": {
			func(b *bench, ctx context.Context) {
				x := b.acquire(b.other())
				time.AfterFunc(2*time.Second, func() { _ = x.Release(context.Background()) })
				_, err := b.locks.Acquire(ctx, "order:42")
				b.ok(err)
			},
			[]string{"acquire.duration 1 2s", "held 1", "waiting 0", "waits 1"}, []string{"acquire 0s-2s fence"},
		},
		"done": {
			func(b *bench, ctx context.Context) {
				b.ok(b.acquire(b.other(), core.WithDedup(time.Hour)).Complete(ctx))
				_, err := b.locks.TryAcquire(ctx, "order:42", core.WithDedup(time.Hour))
				b.is(err, core.ErrDuplicate)
			},
			[]string{"acquire.duration{error.type=duplicate} 1 0s"}, []string{"acquire 0s-0s error.type=duplicate"},
		},
		"unavailable": {
			func(b *bench, ctx context.Context) {
				b.net.All(lab.RequestLost)
				_, err := b.locks.TryAcquire(ctx, "order:42")
				b.is(err, core.ErrUnavailable)
			},
			[]string{"acquire.duration{error.type=unavailable} 1 2s"}, []string{"acquire 0s-2s error.type=unavailable failed: unavailable"},
		},
		"degraded": {
			func(b *bench, ctx context.Context) {
				b.net.All(lab.Refused)
				_, err := b.mayFallBack().TryAcquire(ctx, "order:42", core.OnUnavailable(core.LocalOnly))
				b.ok(err)
			},
			[]string{"acquire.duration 1 0s", "degraded 1", "held 1"}, []string{"acquire 0s-0s distlock.degraded=true"},
		},
		"timeout": {
			func(b *bench, ctx context.Context) {
				b.net.All(lab.RequestLost)
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := b.locks.Acquire(ctx, "order:42")
				b.is(err, context.DeadlineExceeded)
			},
			[]string{"acquire.duration{error.type=timeout} 1 1s"}, []string{"acquire 0s-1s error.type=timeout*"},
		},
		"timeout of one who knows why": {
			func(b *bench, ctx context.Context) {
				b.acquire(b.other())
				ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				_, err := b.locks.Acquire(ctx, "order:42")
				b.is(err, context.DeadlineExceeded)
				b.is(err, core.ErrHeld)
			},
			[]string{"acquire.duration{error.type=held} 1 2s", "waiting 0", "waits 1"}, []string{"acquire 0s-2s error.type=held"},
		},
		"canceled": {
			func(b *bench, ctx context.Context) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				_, err := b.locks.Acquire(ctx, "order:42")
				b.is(err, context.Canceled)
			},
			[]string{"acquire.duration{error.type=canceled} 1 0s"}, []string{"acquire 0s-0s error.type=canceled*"},
		},
		"closed": {
			func(b *bench, ctx context.Context) {
				b.ok(b.locks.Close(ctx))
				_, err := b.locks.Acquire(ctx, "order:42")
				b.is(err, core.ErrClosed)
			},
			[]string{"acquire.duration{error.type=closed} 1 0s"}, []string{"acquire 0s-0s error.type=closed*"},
		},
	}
	ends := map[string]outcome{
		"released": {
			func(b *bench, ctx context.Context) {
				x := b.acquireIn(ctx)
				time.Sleep(2 * time.Second)
				b.ok(x.Release(ctx))
			},
			[]string{"hold.duration 1 2s"}, []string{"hold 0s-2s"},
		},
		"completed": {
			func(b *bench, ctx context.Context) { b.ok(b.acquireIn(ctx, core.WithDedup(time.Hour)).Complete(ctx)) },
			[]string{"hold.duration 1 0s"}, []string{"hold 0s-0s"},
		},
		"renewed": {
			func(b *bench, ctx context.Context) {
				x := b.acquireIn(ctx)
				time.Sleep(4 * time.Second)
				b.ok(x.Release(ctx))
			},
			[]string{"hold.duration 1 4s", "renewals 1"}, []string{"hold 0s-4s"},
		},
		"renewed at the second attempt": {
			func(b *bench, ctx context.Context) {
				b.net.Next(lab.OpRenew, lab.Refused)
				x := b.acquireIn(ctx)
				time.Sleep(4 * time.Second) // the next one is due no earlier than that
				b.ok(x.Release(ctx))
			},
			[]string{"hold.duration 1 4s", "renewals 1", "renewals{error.type=unavailable} 1"}, []string{"hold 0s-4s"},
		},
		"lost because it expired": {
			func(b *bench, ctx context.Context) { <-b.acquireIn(ctx, core.WithoutRenewal()).Context().Done() },
			[]string{"hold.duration{error.type=lost} 1 10s", "lost{distlock.reason=expired} 1"},
			[]string{"hold 0s-* error.type=lost distlock.reason=expired failed: lost"},
		},
		"lost because it was taken": {
			func(b *bench, ctx context.Context) {
				x := b.acquireIn(ctx, core.WithRenewEvery(time.Second))
				b.ok(b.store.Release(ctx, b.net.LastClaim()))
				<-x.Context().Done()
			},
			[]string{"hold.duration{error.type=lost} 1 ?s", "lost{distlock.reason=taken} 1", "renewals{error.type=lost} 1"},
			[]string{"hold 0s-* error.type=lost distlock.reason=taken failed: lost"},
		},
		"lost because nothing answered": {
			func(b *bench, ctx context.Context) {
				x := b.acquireIn(ctx, core.WithRenewEvery(5*time.Second))
				b.net.All(lab.RequestLost, lab.OpRenew)
				<-x.Context().Done()
			},
			[]string{"hold.duration{error.type=lost} 1 10s", "lost{distlock.reason=unreachable} 1", "renewals{error.type=unavailable} ??"},
			[]string{"hold 0s-* error.type=lost distlock.reason=unreachable failed: lost"},
		},
		"lost because of MaxHold, and released later": {
			func(b *bench, ctx context.Context) {
				x := b.acquireIn(ctx, core.WithMaxHold(2*time.Second))
				<-x.Context().Done()
				time.Sleep(time.Second)
				b.is(x.Release(ctx), core.ErrLost)
			},
			[]string{"hold.duration{error.type=lost} 1 2s", "lost{distlock.reason=max-hold} 1"},
			[]string{"hold 0s-2s error.type=lost distlock.reason=max-hold failed: lost"},
		},
		"released, perhaps": {
			func(b *bench, ctx context.Context) {
				x := b.acquireIn(ctx)
				b.net.All(lab.RequestLost, lab.OpRelease)
				b.is(x.Release(ctx), core.ErrUnavailable)
			},
			[]string{"hold.duration{error.type=unavailable} 1 2s", "unconfirmed 1"},
			[]string{"hold 0s-2s error.type=unavailable failed: unavailable"},
		},
		"entered again": { // which is no second lease
			func(b *bench, ctx context.Context) {
				b.ok(b.locks.Do(ctx, "order:42", func(ctx context.Context) error {
					return b.locks.Do(ctx, "order:42", func(context.Context) error {
						b.exports("acquire.duration 1 0s", "held 1", nothingDropped)
						return nil
					})
				}))
			},
			[]string{"hold.duration 1 0s"}, []string{"hold 0s-0s"},
		},
	}
	for name, end := range ends { // each takes a lease out of held
		end.metrics = append(end.metrics, "acquire.duration 1 0s", "held 0")
		end.spans = append([]string{"acquire 0s-0s fence"}, end.spans...)
		acquires[name] = end
	}
	for name, outcome := range acquires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				ctx, parent := b.request()
				began := time.Now()
				outcome.do(b, ctx)
				b.exports(append(outcome.metrics, nothingDropped)...)
				b.spansSay(parent, began, outcome.spans...)
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
