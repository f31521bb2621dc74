// Package drivertest is the definition of a correct backend: a suite that any
// implementation of driver.Driver can be run through, and a [Link] that puts a bad network
// between core and a backend.
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{Open: func(t *testing.T) drivertest.Service {
//			store := memlock.New()
//			return drivertest.Service{Driver: func() driver.Driver { return store }}
//		}, Virtual: true})
//	}
//
// A fault that is found in a backend becomes a case here before it is mended.
package drivertest
