package core_test

import (
	"runtime"
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

func (c *census) observer() observer {
	return observer{
		Acquired: func(core.Event) { c.called("Acquired"); c.leases++ },
		Released: func(core.Event) { c.called("Released"); c.leases-- },
		Lost:     func(core.Event) { c.called("Lost"); c.leases-- },
		Missed:   func(e core.Event) { c.called("Missed"); c.leases += e.Leases },
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
				}, observing(c.observer()))
			})
		}
	}
}
