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
//
// # Breaking things
//
// A backend with a server gives the suite more, so that it can be shown to survive: a
// [Service] whose network goes through proxies (Through), and that another process can reach
// (Holder, with [Hold]), and [Servers] that may be killed (Harness.OpenServers). Cases that need
// what a harness does not have are skipped.
//
// A harness whose services have Through runs the suite once more behind connections of which
// each has a delay of its own: see [Harness.Uneven].
//
// # Evidence
//
// Where the environment variable HOLDFAST_EVIDENCE names a folder, each run of a harness that
// has a Backend leaves a file there, named after it, with what heads the run, and for each
// case the promise that it is evidence for and its outcome: "passed", "failed", "lacks" (what
// the backend does not claim to have), "no server" (there is none to break) or "not run" (the
// harness has not what it takes).
package drivertest
