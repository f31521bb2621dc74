package drivertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

// Harness says how to test a backend.
type Harness struct {
	// Open makes an empty lock service for one case. It arranges the end of the service with
	// t.Cleanup or the service's Close. Cases run in parallel, unless Virtual is set.
	Open func(t *testing.T) Service
	// OpenServers makes a lock service with servers of its own, for a case that kills them. It may
	// be nil.
	OpenServers func(t *testing.T) (Service, Servers)
	// Virtual says that the service runs inside a testing/synctest bubble, on the bubble's time.
	Virtual bool

	uneven bool // see Uneven
	atOnce int
}

// Service is one lock service and the ways to reach it. All fields except Driver may be nil or
// zero. The suite then skips the cases and the checks that need them.
type Service struct {
	// Driver returns a new backend to the service, as another process would have it.
	Driver func() driver.Driver
	// Close ends the service, if t.Cleanup would be too late for a bubble.
	Close func()
	// Overwrite writes a foreign value, without expiry, where the backend keeps the lock of name.
	// Delete deletes what is there. Leave both nil if no other software can reach the data.
	Overwrite, Delete func(name string)
	// Unreachable returns a backend whose service cannot be reached, as if nothing listens there.
	// Leave it nil if that cannot happen.
	Unreachable func() driver.Driver
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
	Through func() (driver.Driver, []*faultproxy.Proxy)
	// Holder is what another process needs to know to reach the service; see [Hold].
	Holder string
}

// Servers are the servers of a lock service.
type Servers struct {
	// Kill ends servers without warning: all of them, or enough that the name "name" cannot be
	// locked. Restart returns once it can be locked again.
	Kill, Restart func()
	// Forgetful says that the servers come back without their data.
	Forgetful bool
}

// env is what a case works with.
type env struct {
	*testing.T
	Service
	ttl     time.Duration // short enough that the case may wait for its end
	virtual bool
	harness Harness
	probe   driver.Driver   // says what the backend can do, and who is in the queue; it is no process of the case
	places  map[string]bool // those that were put in the queue
}

type testCase struct {
	name string
	run  func(e *env)
	// needs says whether the backend can do what the case needs; nil means that any backend can.
	needs func(driver.Capabilities) bool
	// other says that the case needs other software at the service.
	other bool
	// gone says that the case needs a service that cannot be reached.
	gone bool
	// crowd says that dozens of callers keep the machine busy. Two crowds of a process take turns: else the first would
	// measure the second.
	crowd bool
}

var crowds sync.Mutex // held by the case that is a crowd

// Run runs the suite, with a subtest for each case. A case is skipped, and the reason logged, if it
// needs something that the backend does not claim to have.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.uneven {
		h.beside(t)
		return
	}
	for _, c := range suite() {
		t.Run(c.name, func(t *testing.T) {
			if h.Virtual {
				synctest.Test(t, func(t *testing.T) { c.in(t, h, 10*time.Second) })
				return
			}
			t.Parallel()
			c.in(t, h, 2*time.Second)
		})
	}
}

// suite returns all cases.
func suite() []testCase {
	return slices.Concat(
		contractCases,
		coreCases, waitCases,
		lineCases, lineCoreCases,
		offerCases,
		dedupCases,
		keepCases,
		detachCases,
		allCases,
		sharedCases,
		limitCases,
		foreignCases,
		networkCases, abandonCases, cutCases,
		outageCases, readyCases, degradedCases,
		inspectCases, labelCases,
		frozenCases,
	)
}

func (c *testCase) in(t *testing.T, h Harness, ttl time.Duration) {
	t.Helper()
	if c.crowd && !h.Virtual {
		crowds.Lock()
		defer crowds.Unlock()
	}
	s := h.Open(t)
	if s.Close != nil {
		defer s.Close()
	}
	probe := s.Driver()
	can := probe.Capabilities()
	e := &env{
		T: t, Service: s, ttl: max(ttl, can.MinTTL), virtual: h.Virtual, harness: h,
		probe: probe, places: make(map[string]bool),
	}
	switch {
	case c.needs != nil && !c.needs(can):
		e.lacks("it does not claim what this case needs")
	case c.other && s.Overwrite == nil:
		e.lacks("no other software can reach its data")
	case c.gone && s.Unreachable == nil:
		e.lacks("the harness has no service that cannot be reached")
	default:
		c.run(e)
	}
}

// lacks ends a case that the backend, or its harness, does not claim to pass.
func (e *env) lacks(what string) {
	e.Helper()
	e.Skip("not for this backend: " + what)
}

// claim makes a claim with a token of its own.
func (e *env) claim(name string) driver.Claim {
	return driver.Claim{Name: name, Token: token(), TTL: e.ttl}
}

var tokens atomic.Uint64

func token() string { return fmt.Sprintf("token-%016d", tokens.Add(1)) }

// grant acquires c, or fails the case.
func (e *env) grant(d driver.Driver, c driver.Claim) driver.Grant {
	e.Helper()
	g, err := d.Acquire(e.Context(), c)
	if err != nil {
		e.Fatalf("acquire %q: %v", c.Name, err)
	}
	return g
}

func (e *env) noError(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// eventually waits for cond, for a long time. It checks that something happens, not when.
func (e *env) eventually(what string, cond func() bool) {
	e.Helper()
	for range 4000 {
		if cond() {
			return
		}
		time.Sleep(e.ttl / 100)
	}
	e.Fatalf("never came true: %s", what)
}

// within fails the case unless f returns within d and a little slack.
func (e *env) within(d time.Duration, what string, f func()) {
	e.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > d+slack(e) {
		e.Errorf("%s took %s, more than %s", what, took, d)
	}
}

// slack allows for a machine that is busy with something else, which connections that are slow already feel twice.
// There is none in virtual time.
func slack(e *env) time.Duration {
	switch {
	case e.ttl >= 10*time.Second:
		return 0
	case e.harness.uneven:
		return 20 * time.Second
	}
	return 10 * time.Second
}

func fences(can driver.Capabilities) bool { return can.Fence }
func floors(can driver.Capabilities) bool { return can.Floor }
func dedups(can driver.Capabilities) bool { return can.Dedup }

// done returns a context that has ended.
func done() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
