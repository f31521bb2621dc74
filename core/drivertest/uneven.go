package drivertest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

// Uneven returns a harness that runs the same cases over a network in which each connection has a
// delay of its own. So a command that a process sends on one connection can arrive after a later
// command on another. Services must have Through. The run kills no servers.
// atOnce is how many cases run at the same time; they mostly wait.
func (h Harness) Uneven(atOnce int) Harness {
	open := h.Open
	h.OpenServers, h.uneven, h.atOnce = nil, true, atOnce
	h.Open = func(t *testing.T) Service {
		s := open(t)
		through := s.Through
		var processes atomic.Uint64
		s.Through = func() (driver.Driver, []*faultproxy.Proxy) {
			d, proxies := through()
			for _, p := range proxies {
				p.DelayEach(unevenly(processes.Add(1)))
			}
			return d, proxies
		}
		s.Driver = func() driver.Driver {
			d, _ := s.Through()
			return d
		}
		return s
	}
	return h
}

// unevenly is how late the connections of a process are: at most 15 ms for a round trip, except for
// some later connections, which are much slower.
func unevenly(process uint64) func(n int) (toServer, toClient time.Duration) {
	return func(n int) (toServer, toClient time.Duration) {
		random := rand.New(rand.NewPCG(process, uint64(n))) //nolint:gosec // G404, G115: to be repeated, not negative
		some := func(ms int) time.Duration { return time.Duration(random.IntN(1000*ms)) * time.Microsecond }
		if n > 1 && random.IntN(4) == 0 {
			return slowest - some(15), 0
		}
		return some(8), some(7)
	}
}

// How late an answer is at most: on most connections, and on slow ones.
const (
	late    = 15 * time.Millisecond
	slowest = 40 * time.Millisecond
)

// lag is how much longer round trips take than in other harnesses.
func (e *env) lag(trips int) time.Duration {
	if !e.harness.uneven {
		return 0
	}
	return time.Duration(trips) * late
}

// beside runs the cases at the same time, but not as parallel tests: of those, no more run at a time
// than there are processors. They come in any order, so that suites that run beside each other do not all come to the
// same case at once.
func (h Harness) beside(t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	free := make(chan struct{}, h.atOnce)
	cases := suite()
	rand.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] }) //nolint:gosec // G404: no secret
	for _, c := range cases {
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			t.Run(c.name, func(t *testing.T) { c.in(t, h, 3*time.Second) })
		})
	}
	all.Wait()
}
