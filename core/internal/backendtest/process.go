package backendtest

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

// Process makes one more backend, as another process would have it, and its links to the servers.
type Process func() (driver.Driver, []*faultproxy.Proxy)

// Through is p as a [drivertest.Config] has it.
func (p Process) Through() (driver.Driver, []drivertest.Wire) {
	d, links := p()
	wires := make([]drivertest.Wire, len(links))
	for i, link := range links {
		wires[i] = link
	}
	return d, wires
}

// Uneven is the service c, reached by p over a network in which each connection has a delay of its own: at most 15 ms for
// a round trip, and 40 ms for some. So a command that a process sends on one connection can arrive after a later
// command on another.
func (p Process) Uneven(c drivertest.Config) drivertest.Config {
	var processes atomic.Uint64
	uneven := Process(func() (driver.Driver, []*faultproxy.Proxy) {
		d, links := p()
		for _, link := range links {
			link.DelayEach(unevenly(processes.Add(1)))
		}
		return d, links
	})
	c.Through, c.Own = uneven.Through, nil
	c.Driver = func() driver.Driver {
		d, _ := uneven()
		return d
	}
	c.Slow += 80 * time.Millisecond
	return c
}

// unevenly is how late the connections of a process are.
func unevenly(process uint64) func(n int) (toServer, toClient time.Duration) {
	return func(n int) (toServer, toClient time.Duration) {
		random := rand.New(rand.NewPCG(process, uint64(n))) //nolint:gosec // G404, G115: to be repeated, not negative
		some := func(ms int) time.Duration { return time.Duration(random.IntN(1000*ms)) * time.Microsecond }
		if n > 1 && random.IntN(4) == 0 {
			return 25*time.Millisecond + some(15), 0
		}
		return some(8), some(7)
	}
}

// Addrs are the addresses of servers, or of links.
func Addrs[T interface{ Addr() string }](all []T) []string {
	addrs := make([]string, len(all))
	for i, one := range all {
		addrs[i] = one.Addr()
	}
	return addrs
}
