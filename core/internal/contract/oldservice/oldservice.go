// Package oldservice lets backends on the old contract run the suite of the new one, on the services of their own
// tests. It goes with the adapter.
package oldservice

import (
	"time"

	old "github.com/holdfast-go/holdfast/core/driver"
	olddrivertest "github.com/holdfast-go/holdfast/core/drivertest"
	driver "github.com/holdfast-go/holdfast/core/internal/contract"
	drivertest "github.com/holdfast-go/holdfast/core/internal/contract/contracttest"
	"github.com/holdfast-go/holdfast/core/internal/contract/oldadapter"
)

// Config is s, through the adapter. slow is how long a waiter needs from its first refusal into the queue.
func Config(s olddrivertest.Service, slow time.Duration) drivertest.Config {
	c := As(s, oldadapter.New)
	c.Slow = slow
	return c
}

// As is s with backends that are on the new contract by themselves, too.
func As(s olddrivertest.Service, as func(old.Driver) driver.Driver) drivertest.Config {
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
