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

// Uneven is the service c, reached by p over a network in which each connection has delays of its own, and each request and
// each answer, on every connection to every server, another one: at most 15 ms for a round trip, and 40 ms on some. So a
// command that a process sends on one connection can arrive after a later command on another, and a message before or
// after the answers beside it.
func (p Process) Uneven(c drivertest.Config) drivertest.Config {
	var made atomic.Uint64
	uneven := Process(func() (driver.Driver, []*faultproxy.Proxy) {
		d, links := p()
		for _, link := range links {
			link.DelayEach(unevenly(rand.New(rand.NewPCG(1, made.Add(1))))) //nolint:gosec // G404: to be repeated
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

// unevenly is how late what comes by a link is. The link asks for one at a time.
func unevenly(random *rand.Rand) func(n int) (toServer, toClient time.Duration) {
	slow := make(map[int]bool) // by the number of the connection
	return func(n int) (toServer, toClient time.Duration) {
		if _, known := slow[n]; !known {
			slow[n] = n > 1 && random.IntN(4) == 0
		}
		some := func(ms int) time.Duration { return time.Duration(random.IntN(1000*ms)) * time.Microsecond }
		if slow[n] {
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
