// Package drivertest defines what a correct backend is: a suite of cases for every implementation of
// driver.Driver.
//
//	func TestConformance(t *testing.T) {
//		drivertest.RunInBubble(t, func(testing.TB) drivertest.Config {
//			store := memlock.New()
//			return drivertest.Config{Driver: func() driver.Driver { return store }}
//		})
//	}
//
// If you find a fault in a backend, add a case here before you fix it, and add a mutant to the suite's own
// test that the case catches.
//
// A backend that has a server should give the suite more than Driver, so that the suite can break
// things: see [Config]. Cases that need something that is not there are skipped, and say so.
//
// [Orderly] checks the other side: what a backend may rely on core for.
package drivertest
