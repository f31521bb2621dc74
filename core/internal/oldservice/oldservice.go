// Package oldservice lets backends on the old contract run the suite of the new one, on the services of their own
// tests. It goes with the adapter.
package oldservice

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/internal/oldadapter"
	old "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Service is one lock service and the ways to reach it. All fields except Driver may be nil or
// zero. The suite then skips the cases and the checks that need them.
type Service struct {
	// Driver returns a new backend to the service, as another process would have it.
	Driver func() old.Driver
	// Close ends the service, if t.Cleanup would be too late for a bubble.
	Close func()
	// Overwrite writes a foreign value, without expiry, where the backend keeps the lock of name.
	// Delete deletes what is there. Leave both nil if no other software can reach the data.
	Overwrite, Delete func(name string)
	// Unreachable returns a backend whose service cannot be reached, as if nothing listens there.
	// Leave it nil if that cannot happen.
	Unreachable func() old.Driver
	// Stepwise says that Overwrite takes several steps, and that waiters may get the name in
	// between.
	Stepwise bool
	// Timeless says that the service keeps no times, and so cannot tell since when.
	Timeless bool
	// Leftovers lists what the service keeps for names that nobody holds or waits for, except what
	// is documented to stay, such as fences. Leave it nil if that cannot be seen.
	Leftovers func() []string
	// Through returns a new backend to the service, as Driver does. Its network goes through
	// proxies that the case may break.
	Through func() (old.Driver, []*faultproxy.Proxy)
	// Holder is what another process needs to know to reach the service; see [Hold].
	Holder string
}

// Config is s, through the adapter. slow is how long a waiter needs from its first refusal into the queue.
func Config(s Service, slow time.Duration) drivertest.Config {
	c := As(s, func(d old.Driver) driver.Driver { return oldadapter.New(d) })
	c.Slow = slow
	return c
}

// As is s with backends that are on the new contract by themselves, too.
func As(s Service, as func(old.Driver) driver.Driver) drivertest.Config {
	through := func(open func() old.Driver) func() driver.Driver {
		if open == nil {
			return nil
		}
		return func() driver.Driver { return as(open()) }
	}
	c := drivertest.Config{
		Driver: through(s.Driver), Close: s.Close,
		Overwrite: s.Overwrite, Delete: s.Delete, Stepwise: s.Stepwise, Leftovers: s.Leftovers,
		Unreachable: through(s.Unreachable),
	}
	if s.Through != nil {
		c.Through = func() (driver.Driver, []drivertest.Wire) {
			d, proxies := s.Through()
			var wires []drivertest.Wire
			for _, p := range proxies {
				wires = append(wires, p)
			}
			return as(d), wires
		}
	}
	return c
}
