package core_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// long collects the events about calls that have waited for long.
type long struct {
	mu     sync.Mutex // protects events
	events []core.Event
}

func (l *long) observer() core.NewOption {
	return observing(observer{core.EventLongWait: func(e core.Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.events = append(l.events, e)
	}})
}

// are fails the test unless there were n events so far.
func (l *long) are(b *bench, n int) {
	b.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) != n {
		b.Fatalf("%d events, not %d: %+v", len(l.events), n, l.events)
	}
}

func TestACallThatHasWaitedForThreeTTLsIsToldOnce(t *testing.T) {
	t.Parallel()
	type waits = func(ctx context.Context, opts ...core.Option)
	hold := func(b *bench, ctx context.Context, name, label string) *core.Lease {
		return b.lease(b.locks.Acquire(ctx, name, core.WithLabel(label)))
	}
	for what, c := range map[string]struct {
		late  time.Duration // how much later than at three TTLs it may be told
		holds []string      // by the call
		wait  func(b *bench, wait waits) (holder *core.Lease)
	}{
		"for a turn": {0, nil, func(b *bench, wait waits) *core.Lease {
			defer wait(b.Context())
			return hold(b, b.Context(), "name", "holder")
		}},
		"for another process": {time.Second, nil, func(b *bench, wait waits) *core.Lease {
			defer wait(b.Context())
			return b.acquire(b.other(), "name", core.WithLabel("holder"))
		}},
		"for a sibling": {0, []string{"name"}, func(b *bench, wait waits) *core.Lease {
			outer := hold(b, b.Context(), "name", "holder")
			defer wait(outer.Context())
			return hold(b, outer.Context(), "name", "sibling")
		}},
		"while it holds others": {0, []string{"c", "a"}, func(b *bench, wait waits) *core.Lease {
			x, c := hold(b, b.Context(), "name", "holder"), hold(b, b.Context(), "c", "")
			gone := hold(b, c.Context(), "gone", "")
			a := hold(b, gone.Context(), "a", "")
			inside := hold(b, a.Context(), "a", "")
			b.ok(gone.Release(b.Context()))
			wait(inside.Context())
			return x
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := new(long)
			virtual(t, func(b *bench) {
				var served <-chan error
				x := c.wait(b, func(ctx context.Context, opts ...core.Option) {
					served = b.begin(func() error {
						return b.locks.Do(ctx, "name", noWork, append(opts, core.WithTemplate("name-template"))...)
					})
				})
				time.Sleep(3*ttl - 1)
				l.are(b, 0)
				time.Sleep(1 + c.late)
				l.are(b, 1)
				l.mu.Lock()
				e := l.events[0]
				l.mu.Unlock()
				if e.Name != "name" || e.Template != "name-template" || e.Holder != "holder" || !slices.Equal(e.Holds, c.holds) ||
					e.Took < 3*ttl || e.Took > 3*ttl+time.Second {
					b.Errorf("%+v: not of a call that holds %q", e, c.holds)
				}
				time.Sleep(20 * ttl)
				l.are(b, 1)
				b.ok(x.Release(b.Context()))
				b.ok(<-served)
			}, l.observer())
		})
	}
}

// A call that was told of no holder itself may hear of an outage only.
func TestALongWaitIsToldThoughNothingIsKnownOfTheHolder(t *testing.T) {
	t.Parallel()
	l := new(long)
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "name")
		b.call(b.locks)
		b.call(b.locks)
		ctx, resign := context.WithCancel(b.Context())
		defer resign()
		go func() { _ = b.locks.Campaign(ctx, "name", noWork) }() // for which that is normal
		time.Sleep(3*ttl - ttl/2)
		b.link.All(lab.Refused)
		time.Sleep(ttl / 2)
		l.are(b, 2)
	}, l.observer())
}

func TestWhoWaitsForLessIsToldEarlierThoughItComesLater(t *testing.T) {
	t.Parallel()
	l := new(long)
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "name")
		for _, ttl := range []time.Duration{30 * time.Second, time.Second, 30 * time.Second} {
			b.call(b.locks, core.WithTTL(ttl))
		}
		time.Sleep(3*time.Second - 1)
		l.are(b, 0)
		time.Sleep(time.Nanosecond)
		l.are(b, 1)
		time.Sleep(90 * time.Second)
		l.are(b, 3)
	}, l.observer())
}
