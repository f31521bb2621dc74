package core_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// long collects the events about calls that have waited for long.
type long struct {
	mu     sync.Mutex // protects events
	events []core.Event
}

func (l *long) observer() core.NewOption {
	return observing(observer{LongWait: func(e core.Event) {
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

// is fails the test unless the event says this.
func (l *long) is(b *bench, i int, name, holder string, holds ...string) {
	b.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.events[i]
	if e.Name != name || e.Template != name+"-template" || e.Holder != holder || !slices.Equal(e.Holds, holds) ||
		e.Took < 3*ttl || e.Took > 3*ttl+time.Second {
		b.Errorf("%+v: not of %q, held by %q, by a call that holds %q", e, name, holder, holds)
	}
}

func TestACallThatHasWaitedForThreeTTLsIsToldOnce(t *testing.T) {
	t.Parallel()
	hold := func(b *bench, locks *core.Locker, ctx context.Context, name, label string) *core.Lease {
		x := b.lease(locks.Acquire(ctx, name, core.WithLabel(label)))
		return x
	}
	for what, c := range map[string]struct {
		late time.Duration // how much later than at three TTLs it may be told
		wait func(b *bench, waits func(ctx context.Context, opts ...core.Option)) (holder *core.Lease, holds []string)
	}{
		"for a turn": {0, func(b *bench, waits func(context.Context, ...core.Option)) (*core.Lease, []string) {
			x := hold(b, b.locks, b.Context(), "name", "holder")
			waits(b.Context())
			return x, nil
		}},
		"for another process": {time.Second, func(b *bench, waits func(context.Context, ...core.Option)) (*core.Lease, []string) {
			x := hold(b, b.other(), b.Context(), "name", "holder")
			waits(b.Context())
			return x, nil
		}},
		"as a reader": {time.Second, func(b *bench, waits func(context.Context, ...core.Option)) (*core.Lease, []string) {
			x := hold(b, b.locks, b.Context(), "name", "holder")
			waits(b.Context(), core.WithShared())
			return x, nil
		}},
		"for a lease that it does not re-enter": {0, func(b *bench, waits func(context.Context, ...core.Option)) (*core.Lease, []string) {
			x := hold(b, b.locks, b.Context(), "name", "holder")
			waits(context.WithoutCancel(x.Context()), core.WithoutReentry())
			return x, []string{"name"}
		}},
		"for a sibling": {0, func(b *bench, waits func(context.Context, ...core.Option)) (*core.Lease, []string) {
			outer := hold(b, b.locks, b.Context(), "name", "holder")
			sibling := hold(b, b.locks, outer.Context(), "name", "sibling")
			waits(outer.Context())
			b.Cleanup(func() { _ = outer.Release(context.Background()) })
			return sibling, []string{"name"}
		}},
		"while it holds others": {0, func(b *bench, waits func(context.Context, ...core.Option)) (*core.Lease, []string) {
			x := hold(b, b.locks, b.Context(), "name", "holder")
			c := hold(b, b.locks, b.Context(), "c", "")
			gone := hold(b, b.locks, c.Context(), "gone", "")
			a := hold(b, b.locks, gone.Context(), "a", "")
			inside := hold(b, b.locks, a.Context(), "a", "")
			b.ok(gone.Release(b.Context()))
			waits(inside.Context())
			for _, y := range []*core.Lease{inside, a, c} {
				b.Cleanup(func() { _ = y.Release(context.Background()) })
			}
			return x, []string{"c", "a"}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := new(long)
			virtual(t, func(b *bench) {
				served := make(chan error, 1)
				x, holds := c.wait(b, func(ctx context.Context, opts ...core.Option) {
					go func() {
						served <- b.locks.Do(ctx, "name", noWork, append(opts, core.WithTemplate("name-template"))...)
					}()
				})
				time.Sleep(3*ttl - 1)
				l.are(b, 0)
				time.Sleep(1 + c.late)
				l.are(b, 1)
				l.is(b, 0, "name", "holder", holds...)
				time.Sleep(20 * ttl)
				l.are(b, 1)
				b.ok(x.Release(b.Context()))
				b.ok(<-served)
			}, l.observer())
		})
	}
}

func TestProcessesThatWaitForOneAnotherBothTell(t *testing.T) {
	t.Parallel()
	one, two := new(long), new(long)
	virtual(t, func(b *bench) {
		other := b.other(two.observer(), core.WithLabel("two"))
		errs := nested(b, b.locks, other, func(ctx context.Context, name string) error {
			return b.locks.Do(ctx, name, noWork, core.WithWait(10*ttl), core.WithTemplate("b-template"))
		}, func(ctx context.Context, name string) error {
			return other.Do(ctx, name, noWork, core.WithTemplate("a-template"))
		})
		b.is(errs[0], core.ErrHeld)
		b.ok(errs[1])
		one.are(b, 1)
		two.are(b, 1)
		one.is(b, 0, "b", "two", "a")
		two.is(b, 0, "a", "one", "b")
	}, one.observer(), core.WithLabel("one"))
}

func TestWhoWaitsForLessIsToldEarlierThoughItComesLater(t *testing.T) {
	t.Parallel()
	l := new(long)
	virtual(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		x := b.acquire(b.other(), "name")
		var waits sync.WaitGroup
		for _, ttl := range []time.Duration{30 * time.Second, time.Second, 30 * time.Second} {
			waits.Go(func() {
				b.is(second(b.locks.Acquire(ctx, "name", core.WithTTL(ttl))), context.Canceled)
			})
			synctest.Wait()
		}
		time.Sleep(3*time.Second - 1)
		l.are(b, 0)
		time.Sleep(time.Nanosecond)
		l.are(b, 1)
		time.Sleep(90 * time.Second)
		l.are(b, 3)
		cancel()
		waits.Wait()
		b.ok(x.Release(b.Context()))
	}, l.observer())
}

// nested has two calls take two names in opposite order: one holds "a" and asks for "b" after a second, the
// other one holds "b" and asks for "a" after two. It returns what they got.
func nested(b *bench, one, other *core.Locker, asks ...func(ctx context.Context, name string) error) (errs [2]error) {
	var wg sync.WaitGroup
	for i, outer := range []string{"a", "b"} {
		locks := []*core.Locker{one, other}[i]
		wg.Go(func() {
			errs[i] = locks.Do(b.Context(), outer, func(ctx context.Context) error {
				time.Sleep(time.Duration(i+1) * time.Second)
				inner := []string{"b", "a"}[i]
				if i < len(asks) {
					return asks[i](ctx, inner)
				}
				return locks.Do(ctx, inner, noWork)
			})
		})
	}
	wg.Wait()
	return errs
}
