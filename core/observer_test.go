package core_test

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// recorder is an observer that writes down what it is told.
type recorder struct {
	mu     sync.Mutex // protects events
	events []string
}

func (r *recorder) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *recorder) take() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Join(r.events, "; ")
	r.events = nil
	return all
}

func (r *recorder) observer() observer {
	return observer{
		core.EventAcquired: func(e core.Event) {
			r.add("acquired %s %v reentry=%v fence=%v", e.Template, e.Took, e.Reentry, e.Fence > 0)
		},
		core.EventHeld:    func(e core.Event) { r.add("held %s %v", e.Template, e.Took) },
		core.EventWaited:  func(e core.Event) { r.add("waited %s %v ok=%v", e.Template, e.Took, e.Err == nil) },
		core.EventFailed:  func(e core.Event) { r.add("failed %s %v", e.Template, e.Err != nil) },
		core.EventRenewed: func(e core.Event) { r.add("renewed %s ok=%v", e.Template, e.Err == nil) },
		core.EventLost:    func(e core.Event) { r.add("lost %s %s %v", e.Template, e.Reason, e.Held) },
		core.EventReleased: func(e core.Event) {
			r.add("released %s %v marked=%v detached=%v", e.Template, e.Held, e.Marked, e.Detached)
		},
		core.EventUnconfirmed: func(e core.Event) { r.add("unconfirmed %s marked=%v", e.Template, e.Marked) },
		core.EventDropped:     func(e core.Event) { r.add("dropped %d", e.Dropped) },
	}
}

func TestTheObserverIsToldWhatHappens(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		r.told(b, "acquired order 0s reentry=false fence=true")
		b.gets(b.locks.Acquire(x.Context(), "name"))
		r.told(b, "acquired order 0s reentry=true fence=true")
		b.taken(b.locks, "name")
		r.told(b, "held order 0s")
		b.is(second(b.locks.Acquire(b.Context(), "name", core.WithWait(time.Second))), core.ErrHeld)
		r.told(b, "waited order 1s ok=false; held order 1s")
		time.Sleep(3 * time.Second)
		r.told(b, "renewed order ok=true")
		b.ok(x.Finish(b.Context(), nil))
		r.told(b, "released order 4s marked=false detached=false")
		b.link.All(lab.Refused)
		b.is(second(b.locks.TryAcquire(b.Context(), "name")), core.ErrUnavailable)
		r.told(b, "failed order true")
		b.link.All(lab.Delivered)
		y := b.acquire(b.locks, "name", core.WithoutRenewal(), core.WithDedup(time.Hour))
		<-y.Context().Done()
		r.told(b, "acquired order 0s reentry=false fence=true; lost order expired "+(ttl-drift).String())
		time.Sleep(drift)
		b.ok(b.acquire(b.locks, "name", core.WithDedup(time.Hour)).Complete(b.Context()))
		r.told(b, "acquired order 0s reentry=false fence=true; released order 0s marked=true detached=false")
		b.detach(b.acquire(b.locks, "handed-over"))
		r.told(b, "acquired order 0s reentry=false fence=true; released order 0s marked=false detached=true")
		u := b.acquire(b.locks, "deleted")
		b.ok(b.store.Release(b.Context(), b.link.LastClaim()))
		b.is(u.Release(b.Context()), core.ErrLost)
		r.told(b, "acquired order 0s reentry=false fence=true; lost order taken 0s")
		z := b.acquire(b.locks, "another", core.WithDedup(time.Hour))
		b.link.All(lab.Refused)
		b.is(z.Complete(b.Context()), core.ErrUnavailable)
		r.told(b, "acquired order 0s reentry=false fence=true; unconfirmed order marked=false")
	}, observing(r.observer()), core.WithTemplate("order"))
}

// told fails the test unless the observer was told this since the last time.
func (r *recorder) told(b *bench, want string) {
	b.Helper()
	if got := r.take(); got != want {
		b.Errorf("told %q, not %q", got, want)
	}
}

func TestABlockedObserverDelaysNothingAndLosesOnlyEvents(t *testing.T) {
	t.Parallel()
	var release chan bool
	dropped, leases := 0, 0
	virtual(t, func(b *bench) {
		release = make(chan bool) // of this bubble
		x := b.acquire(b.locks, "held")
		b.took(0, 0, func() {
			for i := range 1000 {
				template := core.WithTemplate([]string{"told", "missed"}[i/900]) // of the last ones nothing is told
				b.ok(b.acquire(b.locks, "name", template).Release(b.Context()))
			}
			b.ok(b.lease(b.locks.Acquire(x.Context(), "held")).Release(b.Context())) // which is no further lease
		})
		time.Sleep(10 * ttl)
		b.ok(x.Err())
		close(release)
		synctest.Wait()
		if dropped == 0 {
			b.Error("two thousand events were kept for an observer that was blocked")
		}
		if leases != 1 {
			b.Errorf("by what it was told, %d leases are held", leases)
		}
	}, observing(observer{
		core.EventAcquired: func(core.Event) { <-release; leases++ },
		core.EventReleased: func(core.Event) { leases-- },
		core.EventMissed: func(e core.Event) {
			if leases += e.Leases; e.Leases == 0 {
				t.Error("told of nothing that was missed")
			}
		},
		core.EventDropped: func(e core.Event) { dropped += e.Dropped },
	}))
}

// census counts leases as the documentation of Event says. Now and then it fails before it counts.
type census struct {
	leases, dropped, failed int
	fails                   map[core.EventKind]int // the events at which it does: every nth
	fail                    func()
	calls                   map[core.EventKind]int
}

func (c *census) observe(e core.Event) {
	c.calls[e.Kind]++
	if n := c.fails[e.Kind]; n > 0 && c.calls[e.Kind]%n == 0 {
		if e.Kind != core.EventMissed && e.Kind != core.EventDropped {
			c.failed++
		}
		c.fail()
	}
	switch e.Kind {
	case core.EventAcquired:
		c.leases++
	case core.EventReleased, core.EventLost:
		c.leases--
	case core.EventMissed:
		c.leases += e.Leases
	case core.EventDropped:
		c.dropped += e.Dropped
	default:
	}
}

func TestAnObserverThatFailsLosesEventsAndNothingElse(t *testing.T) {
	t.Parallel()
	for how, fail := range map[string]func(){"panic": func() { panic("observer") }, "Goexit": runtime.Goexit} {
		for what, fails := range map[string]map[core.EventKind]int{
			"now and then":    {core.EventAcquired: 3, core.EventReleased: 5, core.EventLost: 2, core.EventMissed: 2, core.EventDropped: 3},
			"always":          {core.EventAcquired: 1, core.EventReleased: 1},
			"at every second": {core.EventAcquired: 2, core.EventMissed: 2, core.EventDropped: 2},
			"everything":      {core.EventAcquired: 1, core.EventReleased: 1, core.EventLost: 1, core.EventMissed: 1, core.EventDropped: 1},
		} {
			c := &census{fails: fails, fail: fail, calls: make(map[core.EventKind]int)}
			virtual(t, func(b *bench) {
				for range 500 {
					b.ok(b.acquire(b.locks, "name").Release(b.Context()))
					synctest.Wait() // or else events are dropped, as there are too many
				}
				for _, name := range []string{"a", "b", "c"} {
					<-b.acquire(b.locks, name, core.WithoutRenewal()).Context().Done()
				}
				b.acquire(b.locks, "held")
				synctest.Wait()
				c.fails = nil
				b.ok(b.acquire(b.locks, "name").Release(b.Context())) // has told what could not be told before
				synctest.Wait()
				if c.leases != 1 {
					b.Errorf("%s %s: %d leases by count, and 1 is held", how, what, c.leases)
				}
				if c.failed == 0 || c.dropped != c.failed {
					b.Errorf("%s %s: %d events dropped by count, and %d were", how, what, c.dropped, c.failed)
				}
			}, core.WithObserver(c.observe))
		}
	}
}

func TestAWaitWhoseBeginOrEndWasNotToldIsCounted(t *testing.T) {
	t.Parallel()
	waiting, fails := 0, func(core.Event) { panic("observer") }
	for what, o := range map[string]observer{
		"begin": {core.EventWaiting: fails, core.EventWaited: func(core.Event) { waiting-- }},
		"end":   {core.EventWaiting: func(core.Event) { waiting++ }, core.EventWaited: fails},
	} {
		o[core.EventMissed] = func(e core.Event) { waiting += e.Waiters }
		virtual(t, func(b *bench) {
			b.acquire(b.other(), "name")
			w := b.call(b.locks)
			if waiting != 1 {
				b.Errorf("%s: %d wait by count", what, waiting)
			}
			w.cancel()
			synctest.Wait()
			if waiting != 0 {
				b.Errorf("%s: %d wait by count, and nobody does", what, waiting)
			}
		}, observing(o))
	}
}

// observer has functions for kinds of events.
type observer map[core.EventKind]func(core.Event)

// observing has o told.
func observing(o observer) core.NewOption {
	return core.WithObserver(func(e core.Event) {
		if f := o[e.Kind]; f != nil {
			f(e)
		}
	})
}

func TestTheObserverGivesTheWorkItsContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	var seen []any // the values that later events have
	see := func(e core.Event) { seen = append(seen, e.Context.Value(key{})) }
	virtual(t, func(b *bench) {
		has := func(want string) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				if v := ctx.Value(key{}); v != want {
					b.Errorf("%v, not %v", v, want)
				}
				return nil
			}
		}
		b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
			return b.locks.Do(ctx, "a", has("work on a")) // the outer one's
		}))
		b.ok(b.locks.DoAll(b.Context(), []string{"c", "b"}, has("work on c")))
		x := b.acquire(b.locks, "name")
		b.ok(has("work on name")(x.Context()))
		turn := turnAfter(x, b.call(b.locks))
		b.ok(has("work on name")(turn.Context()))
		b.ok(turn.Release(b.Context()))
		y := b.acquire(b.locks, "e", core.WithMaxHold(time.Second))
		time.Sleep(2 * time.Second)
		b.is(y.Release(b.Context()), core.ErrLost)
		b.ok(b.locks.Close(b.Context()))
		if len(seen) != 6 || slices.Contains(seen, nil) {
			b.Errorf("%v", seen)
		}
	}, observing(observer{core.EventReleased: see, core.EventLost: see}),
		core.WithWorkContext(func(ctx context.Context, e core.Event) context.Context {
			return context.WithValue(ctx, key{}, map[bool]string{true: "re-entry of ", false: "work on "}[e.Reentry]+e.Name)
		}))
}

func TestAnObserverThatFailsToMakeAContextHarmsNoWork(t *testing.T) {
	t.Parallel()
	for _, fails := range map[string]func(){"panics": func() { panic("on purpose") }, "gives nothing": func() {}} {
		virtual(t, func(b *bench) {
			for range 2 {
				b.is(b.locks.Do(b.Context(), "name", func(ctx context.Context) error { return cmp.Or(ctx.Err(), errWork) }), errWork)
			}
			b.free()
		}, core.WithWorkContext(func(context.Context, core.Event) context.Context { fails(); return nil }), core.WithLogger(nil))
	}
}

func TestAWorkContextThatEndsEndsTheWaitForFurtherNames(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.is(second(b.locks.AcquireAll(b.Context(), pair)), context.Canceled)
		b.pairIsFree()
	}, core.WithWorkContext(func(ctx context.Context, _ core.Event) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx
	}))
}

func TestAnObserverThatEndsTheGoroutineLeavesNoLease(t *testing.T) {
	t.Parallel()
	for leases, calls := range map[int]func(b *bench){
		1: func(b *bench) { _, _ = b.locks.Acquire(b.Context(), "b") },
		2: func(b *bench) { _, _ = b.locks.AcquireAll(b.Context(), pair) },
	} {
		counts := make(map[core.EventKind]int)
		virtual(t, func(b *bench) {
			x := b.acquire(b.other(), "b")
			go calls(b)
			synctest.Wait()
			b.ok(x.Release(b.Context()))
			synctest.Wait()
			b.pairIsFree()
			b.ok(b.locks.Close(b.Context()))
			if counts[core.EventAcquired] != leases || counts[core.EventReleased] != leases || counts[core.EventWaiting] != counts[core.EventWaited] {
				b.Errorf("of %d leases the observer was told %v", leases, counts)
			}
		}, core.WithObserver(func(e core.Event) { counts[e.Kind]++ }), core.WithWorkContext(func(_ context.Context, e core.Event) context.Context {
			if e.Name == "b" {
				runtime.Goexit()
			}
			return nil
		}))
	}
}

// madeKey is in the contexts that a test has made.
type madeKey struct{}

func TestALeaseIsAcquiredBeforeItIsLost(t *testing.T) {
	t.Parallel()
	var told []core.EventKind
	virtual(t, func(b *bench) {
		for _, late := range []time.Duration{0, ttl / 9} { // with ttl/9 it is lost before its caller has it
			told = nil
			ctx := &asked{b.Context(), 0, func(int) { time.Sleep(late) }}
			x := b.lease(b.locks.TryAcquire(ctx, "name", core.WithMaxHold(ttl/10)))
			if x.Context().Value(madeKey{}) != nil {
				b.Error("the work has another context than the end that observers were told of")
			}
			b.is(x.Release(b.Context()), core.ErrLost)
			synctest.Wait()
			if !slices.Equal(told, []core.EventKind{core.EventAcquired, core.EventLost}) {
				b.Errorf("%v", told)
			}
		}
	}, core.WithObserver(func(e core.Event) { told = append(told, e.Kind) }),
		core.WithWorkContext(func(ctx context.Context, _ core.Event) context.Context {
			time.Sleep(ttl / 5)
			return context.WithValue(ctx, madeKey{}, true)
		}))
}

func TestWorkThatOnlyAsksLearnsThatItsCallerHasGone(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		b.is(b.locks.Do(ctx, "name", func(ctx context.Context) error {
			b.ok(ctx.Err())
			cancel()
			return ctx.Err()
		}), context.Canceled)
	})
}
