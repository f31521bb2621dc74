package telemetrytest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// In all of these the counter of dropped events stands at the 0 that New has given it.
const nothingDropped = "events.dropped{no template} 0"

func othersHoldIt(b *bench) { b.acquire(b.other()) }

func othersReleaseIt(b *bench) {
	x := b.acquire(b.other())
	time.AfterFunc(2*time.Second, func() { _ = x.Release(context.Background()) })
}

func othersHaveDoneIt(b *bench) {
	b.ok(b.acquire(b.other(), core.WithDedup(time.Hour)).Complete(b.Context()))
}

// fate is what happens to every call of some kinds, or of all.
func fate(f lab.Fate, ops ...lab.Op) func(*bench) {
	return func(b *bench) { b.net.All(f, ops...) }
}

// What a call or a lease comes to is a series of its own, and up to two spans of the caller's trace. They have failed only if
// something went wrong. Series and spans are separated by "; ".
func TestEveryOutcomeOfACallIsASeriesAndASpan(t *testing.T) {
	t.Parallel()
	once, goesLocal := core.WithWait(0), core.OnUnavailable(core.LocalOnly)
	for what, row := range map[string]struct {
		before         func(*bench)
		in             time.Duration // the time that the caller has; 0 is for ever
		opts           []core.Option
		want           error
		metrics, spans string
	}{
		"granted": {metrics: "acquire.duration 1 0s; held 1", spans: "acquire 0s-0s fence"},
		"granted after a wait": {
			before: othersReleaseIt, metrics: "acquire.duration 1 2s; held 1; waiting 0; waits 1", spans: "acquire 0s-2s fence",
		},
		"held": {
			before: othersHoldIt, opts: []core.Option{once}, want: core.ErrHeld,
			metrics: "acquire.duration{error.type=held} 1 0s", spans: "acquire 0s-0s error.type=held",
		},
		"held for the whole wait": {
			before: othersHoldIt, opts: []core.Option{core.WithWait(3 * time.Second)}, want: core.ErrHeld,
			metrics: "acquire.duration{error.type=held} 1 3s; waiting 0; waits 1", spans: "acquire 0s-3s error.type=held",
		},
		"timeout of one who knows why": {
			before: othersHoldIt, in: 2 * time.Second, want: core.ErrHeld,
			metrics: "acquire.duration{error.type=held} 1 2s; waiting 0; waits 1", spans: "acquire 0s-2s error.type=held",
		},
		"timeout": {
			before: fate(lab.RequestLost), in: time.Second, want: context.DeadlineExceeded,
			metrics: "acquire.duration{error.type=timeout} 1 1s", spans: "acquire 0s-1s error.type=timeout*",
		},
		"canceled": {
			in: -1, want: context.Canceled,
			metrics: "acquire.duration{error.type=canceled} 1 0s", spans: "acquire 0s-0s error.type=canceled*",
		},
		"done": {
			before: othersHaveDoneIt, opts: []core.Option{core.WithDedup(time.Hour)}, want: core.ErrDuplicate,
			metrics: "acquire.duration{error.type=duplicate} 1 0s", spans: "acquire 0s-0s error.type=duplicate",
		},
		"unavailable": {
			before: fate(lab.RequestLost), opts: []core.Option{once}, want: core.ErrUnavailable,
			metrics: "acquire.duration{error.type=unavailable} 1 2s", spans: "acquire 0s-2s error.type=unavailable failed: unavailable",
		},
		"degraded": {
			before: fate(lab.Refused), opts: []core.Option{once, goesLocal},
			metrics: "acquire.duration 1 0s; degraded 1; held 1", spans: "acquire 0s-0s distlock.degraded=true",
		},
		"closed": {
			before: func(b *bench) { b.ok(b.locks.Close(b.Context())) }, want: core.ErrClosed,
			metrics: "acquire.duration{error.type=closed} 1 0s", spans: "acquire 0s-0s error.type=closed*",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				b.locks = b.mayFallBack()
				if row.before != nil {
					row.before(b)
				}
				ctx, parent := b.request()
				began := time.Now()
				switch {
				case row.in > 0:
					ctx = b.in(ctx, row.in)
				case row.in < 0:
					ctx = canceled(ctx)
				}
				_, err := b.locks.Acquire(ctx, "order:42", row.opts...)
				b.is(err, row.want)
				b.exports(append(strings.Split(row.metrics, "; "), nothingDropped)...)
				b.spansSay(parent, began, strings.Split(row.spans, "; ")...)
			})
		})
	}
}

func TestEveryEndOfALeaseIsASeriesAndASpan(t *testing.T) {
	t.Parallel()
	loss := func(reason string) string { return " error.type=lost distlock.reason=" + reason + " failed: lost" }
	for what, row := range map[string]struct {
		opts           []core.Option
		during         func(*bench)
		held           time.Duration // before it is released; 0 is until it is lost
		want           error
		metrics, spans string
	}{
		"released": {held: 2 * time.Second, metrics: "hold.duration 1 2s", spans: "hold 0s-2s"},
		"renewed":  {held: 4 * time.Second, metrics: "hold.duration 1 4s; renewals 1", spans: "hold 0s-4s"},
		"renewed at the second attempt": { // the next one is due no earlier than that
			during: func(b *bench) { b.net.Next(lab.OpRenew, lab.Refused) }, held: 4 * time.Second,
			metrics: "hold.duration 1 4s; renewals 1; renewals{error.type=unavailable} 1", spans: "hold 0s-4s",
		},
		"lost because it expired": {
			opts: []core.Option{core.WithoutRenewal()}, want: core.ErrLost,
			metrics: "hold.duration{error.type=lost} 1 10s; lost{distlock.reason=expired} 1", spans: "hold 0s-*" + loss("expired"),
		},
		"lost because it was taken": {
			opts:   []core.Option{core.WithRenewEvery(time.Second)},
			during: func(b *bench) { b.ok(b.store.Release(b.Context(), b.net.LastClaim())) }, want: core.ErrLost,
			metrics: "hold.duration{error.type=lost} 1 ?s; lost{distlock.reason=taken} 1; renewals{error.type=lost} 1",
			spans:   "hold 0s-*" + loss("taken"),
		},
		"lost because nothing answered": {
			opts: []core.Option{core.WithRenewEvery(5 * time.Second)}, during: fate(lab.RequestLost, lab.OpRenew), want: core.ErrLost,
			metrics: "hold.duration{error.type=lost} 1 10s; lost{distlock.reason=unreachable} 1; renewals{error.type=unavailable} ??",
			spans:   "hold 0s-*" + loss("unreachable"),
		},
		"lost because of MaxHold": {
			opts: []core.Option{core.WithMaxHold(2 * time.Second)}, want: core.ErrLost,
			metrics: "hold.duration{error.type=lost} 1 2s; lost{distlock.reason=max-hold} 1", spans: "hold 0s-2s" + loss("max-hold"),
		},
		"released, perhaps": {
			during: fate(lab.RequestLost, lab.OpRelease), held: 1, want: core.ErrUnavailable,
			metrics: "hold.duration{error.type=unavailable} 1 2s; unconfirmed 1", spans: "hold 0s-2* error.type=unavailable failed: unavailable",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				ctx, parent := b.request()
				began := time.Now()
				x, err := b.locks.Acquire(ctx, "order:42", row.opts...)
				b.ok(err)
				if row.during != nil {
					row.during(b)
				}
				if row.held == 0 {
					<-x.Context().Done()
				}
				time.Sleep(row.held)
				b.is(x.Release(ctx), row.want)
				b.exports(append(strings.Split(row.metrics, "; "), "acquire.duration 1 0s", "held 0", nothingDropped)...)
				b.spansSay(parent, began, append([]string{"acquire 0s-0s fence"}, strings.Split(row.spans, "; ")...)...)
			})
		})
	}
}

// leaver is a lock service whose caller goes before it answers.
type leaver struct {
	*memlock.Store
	leave context.CancelFunc
}

func (l leaver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := l.Store.Acquire(ctx, c)
	l.leave()
	time.Sleep(time.Millisecond) // in virtual time: he has gone
	return g, err
}

func TestAGrantWhoseCallerHasGoneIsNoLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, leave := context.WithCancel(b.Context())
		locks := b.locker(leaver{b.store, leave}, core.WithTemplate(template), b.tel.Option())
		_, err := locks.TryAcquire(ctx, "order:42")
		b.is(err, context.Canceled)
		b.exports("acquire.duration{error.type=canceled} 1 0s", nothingDropped)
	})
}

// Core says how many leases and waiters the dropped events leave out.
func TestCountsStayRightWhereEventsWereDropped(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for _, e := range []core.Event{
			{Kind: core.EventMissed, Leases: 3, Waiters: 2}, {Kind: core.EventMissed, Leases: -1, Waiters: -2}, {Kind: core.EventDropped, Dropped: 7},
		} {
			e.Template = template
			b.tel.Observe(e)
		}
		b.exports("held 2", "waiting 0", "events.dropped{no template} 7")
	})
}
