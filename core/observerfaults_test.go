package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/core"
)

// census counts leases as the documentation of Observer says, beside functions that fail now and
// then, before they count.
type census struct {
	leases, dropped, failed int
	fails                   map[string]int // the calls of a function that fail: every nth
	fail                    func()
	calls                   map[string]int
}

func (c *census) called(function string) {
	c.calls[function]++
	if n := c.fails[function]; n > 0 && c.calls[function]%n == 0 {
		if function != "Missed" && function != "Dropped" {
			c.failed++
		}
		c.fail()
	}
}

func (c *census) observer() core.Observer {
	return core.Observer{
		Acquired: func(core.AcquiredEvent) { c.called("Acquired"); c.leases++ },
		Released: func(core.ReleasedEvent) { c.called("Released"); c.leases-- },
		Lost:     func(core.LostEvent) { c.called("Lost"); c.leases-- },
		Missed:   func(e core.MissedEvent) { c.called("Missed"); c.leases += e.Leases },
		Dropped:  func(n int) { c.called("Dropped"); c.dropped += n },
	}
}

func TestAnObserverThatFailsLosesEventsAndNothingElse(t *testing.T) {
	t.Parallel()
	for how, fail := range map[string]func(){"panic": func() { panic("observer") }, "Goexit": runtime.Goexit} {
		for what, fails := range map[string]map[string]int{
			"now and then":    {"Acquired": 3, "Released": 5, "Lost": 2, "Missed": 2, "Dropped": 3},
			"always":          {"Acquired": 1, "Released": 1},
			"at every second": {"Acquired": 2, "Missed": 2, "Dropped": 2},
			"everything":      {"Acquired": 1, "Released": 1, "Lost": 1, "Missed": 1, "Dropped": 1},
		} {
			t.Run(how+" "+what, func(t *testing.T) {
				t.Parallel()
				c := &census{fails: fails, fail: fail, calls: make(map[string]int)}
				virtual(t, func(b *bench) {
					const n = 500
					for range n {
						b.ok(b.acquire(b.locks, "name").Release(b.Context()))
						synctest.Wait() // or else events are dropped, as there are too many
					}
					for _, name := range []string{"a", "b", "c"} {
						<-b.acquire(b.locks, name, core.WithoutRenewal()).Context().Done()
					}
					x := b.acquire(b.locks, "held")
					synctest.Wait()
					c.fails = nil
					b.ok(b.acquire(b.locks, "name").Release(b.Context())) // has told what could not be told before
					synctest.Wait()
					if c.leases != 1 {
						b.Errorf("%d leases by count, and 1 is held", c.leases)
					}
					if c.failed == 0 || c.dropped != c.failed {
						b.Errorf("%d events dropped by count, and %d were", c.dropped, c.failed)
					}
					b.ok(x.Release(b.Context()))
					b.ok(b.locks.Close(b.Context()))
				}, core.WithObserver(c.observer()))
			})
		}
	}
}

func TestWhatAnObserverPanicsWithIsLoggedOnceAndWithoutItsValue(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := core.Observer{
		Acquired: func(e core.AcquiredEvent) { panic(e.Name) },
		Held:     func(e core.HeldEvent) { panic(errors.New(e.Name)) },
		Released: func(core.ReleasedEvent) { runtime.Goexit() },
	}
	virtual(t, func(b *bench) {
		for range 3 {
			x := b.acquire(b.locks, "secret-name")
			_, err := b.locks.TryAcquire(b.Context(), "secret-name")
			b.is(err, core.ErrHeld)
			b.ok(x.Release(b.Context()))
		}
		synctest.Wait()
		text := out.String()
		for want, n := range map[string]int{
			"function=Acquired": 1, "with=string": 1,
			"function=Held": 1, "with=*errors.errorString": 1,
			"function=Released": 1, "with=runtime.Goexit": 1,
			"at=github.com/holdfast-go/holdfast/core_test.TestWhatAnObserverPanicsWithIsLoggedOnceAndWithoutItsValue.func": 3,
			"events dropped": 1,
		} {
			if got := strings.Count(text, want); got != n {
				b.Errorf("%q %d times, not %d, in\n%s", want, got, n, text)
			}
		}
		if strings.Contains(text, "secret") {
			b.Errorf("a name in %s", text)
		}
	}, core.WithObserver(o), core.WithLogger(slog.New(slog.NewTextHandler(&out, nil))))
}

// mute is a log whose handler fails.
type mute struct{ fail func() }

func (mute) Enabled(context.Context, slog.Level) bool    { return true }
func (h mute) Handle(context.Context, slog.Record) error { h.fail(); return nil }
func (h mute) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h mute) WithGroup(string) slog.Handler             { return h }

func TestALogThatFailsStopsNeitherObserverNorService(t *testing.T) {
	t.Parallel()
	for how, fail := range map[string]func(){"panic": func() { panic("log") }, "Goexit": runtime.Goexit} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			calls := 0
			c := &census{calls: make(map[string]int)}
			virtual(t, func(b *bench) {
				for range 3 {
					x := b.acquire(b.locks, "name", core.WithoutRenewal())
					<-x.Context().Done()
					b.store.Lose("name")
				}
				synctest.Wait()
				if calls == 0 || c.leases != 0 {
					b.Errorf("%d lines, %d leases by count", calls, c.leases)
				}
				b.ok(b.locks.Close(b.Context()))
			}, core.WithObserver(c.observer()), core.WithLogger(slog.New(mute{func() { calls++; fail() }})))
		})
	}
}
