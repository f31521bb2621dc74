// Package drivertest defines what a correct backend is. It has a conformance suite for every
// implementation of driver.Driver, and a [Link] that puts a bad network between core and a
// backend.
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{Open: func(t *testing.T) drivertest.Service {
//			store := memlock.New()
//			return drivertest.Service{Driver: func() driver.Driver { return store }}
//		}, Virtual: true})
//	}
//
// If you find a fault in a backend, add a case here before you fix it.
//
// # Breaking things
//
// If a backend has a server, its harness should give the suite more, so that the suite can break
// it:
//
//   - a [Service] whose network goes through proxies (Through),
//   - a [Service] that another process can reach (Holder, with [Hold]),
//   - [Servers] that may be killed (Harness.OpenServers).
//
// Cases that need something that the harness does not have are skipped.
//
// If services have Through, run the suite once more with [Harness.Uneven]: each connection then
// has a delay of its own.
package drivertest
