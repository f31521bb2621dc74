package drivertest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

// Harness says how to test a backend.
type Harness struct {
	// Backend and Server, such as "Redis" and "Redis 7.0", head what the run is evidence for;
	// see the package's documentation. Without a Backend it is evidence for nothing.
	Backend, Server string
	// Open makes a lock service that is empty, for one case, and arranges its end with
	// t.Cleanup or the service's Close.
	Open func(t *testing.T) Service
	// OpenServers makes a lock service with servers of its own, for a case that kills them.
	OpenServers func(t *testing.T) (Service, Servers)
	// Virtual says that the service runs inside a testing/synctest bubble, on its time.
	Virtual bool
	// Serverless says that there is no server, and no network to it. Where there is one, and
	// OpenServers or Through is nil, evidence says that what needs it was not run.
	Serverless bool

	uneven bool // see Uneven
	atOnce int
}

// Service is one lock service and the ways to reach it.
type Service struct {
	// Driver returns a backend as one more process would have it.
	Driver func() driver.Driver
	// Close ends the service, where t.Cleanup would be too late for a bubble. It may be nil.
	Close func()
	// Overwrite has other software write a value of its own, without expiry, in the place
	// where the backend keeps the lock of name. Delete has it delete what is there. They
	// may be nil, where there can be no other software.
	Overwrite, Delete func(name string)
	// Unreachable returns a backend whose service nobody can reach, as where nothing listens. It
	// may be nil, where there is no such thing.
	Unreachable func() driver.Driver
	// Stepwise says that Overwrite takes several steps, and that those who wait may get the name
	// in between.
	Stepwise bool
	// Leftovers lists what the service keeps of names that nobody holds or waits for, but for
	// what is documented to stay, such as fences. It may be nil, where that cannot be seen.
	Leftovers func() []string
	// Through returns a backend as one more process would have it, whose network goes through
	// proxies that the case may break.
	Through func() (driver.Driver, []*faultproxy.Proxy)
	// Holder is what another process needs to know to reach the service; see [Hold].
	Holder string
}

// Servers are those of a lock service.
type Servers struct {
	// Kill ends them without warning, or as many of them that the name "name" cannot be
	// locked. Restart returns once it can be locked again.
	Kill, Restart func()
	// Forgetful says that they know nothing of what was held when they come back.
	Forgetful bool
}

// env is what a case works with.
type env struct {
	*testing.T
	Service
	ttl     time.Duration // one that the case may wait for
	virtual bool
	harness Harness
	result  *result
}

type testCase struct {
	name    string
	promise promise
	run     func(e *env)
	// needs says what the backend must be able to do; nil: everything.
	needs func(driver.Capabilities) bool
	// other says that the case needs other software at the service.
	other bool
	// gone says that it needs a service that cannot be reached.
	gone bool
}

// Run runs the suite. Cases that need what the backend does not claim to have are logged
// and skipped.
func Run(t *testing.T, h Harness) {
	t.Helper()
	record := newRecord(t, h)
	if h.uneven {
		h.beside(t)
		return
	}
	for _, c := range suite() {
		t.Run(c.name, func(t *testing.T) {
			result := record.begin(t, c)
			if h.Virtual {
				synctest.Test(t, func(t *testing.T) { c.in(t, h, 10*time.Second, result) })
				return
			}
			t.Parallel()
			c.in(t, h, time.Second, result)
		})
	}
}

func concat(lists ...[]testCase) (all []testCase) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

func (c *testCase) in(t *testing.T, h Harness, ttl time.Duration, result *result) {
	t.Helper()
	s := h.Open(t)
	if s.Close != nil {
		defer s.Close()
	}
	can := s.Driver().Capabilities()
	e := &env{T: t, Service: s, ttl: max(ttl, can.MinTTL), virtual: h.Virtual, harness: h, result: result}
	switch {
	case c.needs != nil && !c.needs(can):
		e.lacks("it does not claim what this case needs")
	case c.other && s.Overwrite == nil:
		e.lacks("no other software can reach its data")
	case c.gone && s.Unreachable == nil:
		e.skip(notRun, "the harness has no service that cannot be reached")
	default:
		c.run(e)
	}
}

// lacks ends a case that the backend cannot pass and does not claim to.
func (e *env) lacks(what string) {
	e.Helper()
	e.skip(lacking, what)
}

// unbroken ends a case that breaks what the harness has not given it.
func (e *env) unbroken(what string) {
	e.Helper()
	if e.harness.Serverless || e.virtual {
		e.skip(pointless, "there is no server")
	}
	e.skip(notRun, "the harness has no "+what)
}

func (e *env) skip(o verdict, why string) {
	e.Helper()
	e.result.Outcome, e.result.Reason = o, why
	e.Skip("not for this backend: " + why)
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

// eventually waits for cond, for a long time: it is for what must happen, not for when.
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

// within fails the case unless f returns within d, and a little.
func (e *env) within(d time.Duration, what string, f func()) {
	e.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > d+slack(e) {
		e.Errorf("%s took %s, more than %s", what, took, d)
	}
}

// slack is for a machine that is busy with something else. There is none in virtual time.
func slack(e *env) time.Duration {
	if e.ttl >= 10*time.Second {
		return 0
	}
	return 10 * time.Second
}

func fences(can driver.Capabilities) bool { return can.Fence }
func dedups(can driver.Capabilities) bool { return can.Dedup }

// done returns a context that has ended.
func done() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
