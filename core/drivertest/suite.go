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
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// Config is one lock service, made for one case, and the ways to reach and to break it. Only Driver is required.
// The suite skips what needs something that is not there. The maker arranges the end of the service with
// Cleanup, or in a bubble with Close.
type Config struct {
	// Driver returns a new backend to the service, as another process would have it.
	Driver func() driver.Driver
	// Close ends the service, where Cleanup would be too late for a bubble.
	Close func()
	// Slow is how much longer a round trip may take than on a good network, and how much later than its first
	// refusal a waiter may be in the queue.
	Slow time.Duration
	// Overtaken says that on a slow network or machine the next entry may overtake the first.
	Overtaken bool

	// Overwrite writes a foreign value, without expiry, where the backend keeps the lock of name. Delete
	// deletes what is there. Stepwise says that Overwrite takes several steps, and that a waiter may get
	// the name in between.
	Overwrite, Delete func(name string)
	Stepwise          bool
	// Leftovers lists what the service keeps for names that nobody holds or waits for, except what is
	// documented to stay, such as fences.
	Leftovers func() []string
	// Names is how many names are used once, to see what is left of them: 10,000, or fewer where that takes more than a
	// few seconds.
	Names int
	// Messages returns what hears all that waiters for a name are told from now on, and what tells them
	// something as if it came from the service.
	Messages func(name string) (heard func() []Message, send func(Message))

	// Unreachable returns a backend where nothing listens.
	Unreachable func() driver.Driver
	// Through returns a new backend, as Driver does, over connections that the case may break.
	Through func() (driver.Driver, []Wire)
	// Own returns a service with servers of its own, with Kill and Restart.
	Own func() Config
	// Kill ends the servers without warning: all, or enough that the name "name" cannot be locked. Restart returns once
	// it can be locked again. Forgetful says that they come back without their data.
	Kill, Restart func()
	Forgetful     bool
}

// Message is what a backend's service tells a waiter: on which channel, and what.
type Message struct{ To, Text string }

// Wire is a connection that can be broken, such as a *faultproxy.Proxy.
type Wire interface {
	CutRequest(n int)        // the nth request from now does not arrive, and its connection breaks
	CutReply(n int)          // the nth request from now is executed, and its connection breaks
	Before(n int, do func()) // do is called right before the nth request from now arrives
	BlackHole(on bool)       // nothing arrives any more, and nothing breaks
	BlackHoleNew(bool)       // the same for new connections alone
	SetDelay(toServer, toClient time.Duration)
	Requests() int // how many have arrived or were cut
	Heal()
}

// env is what a case works with.
type env struct {
	testing.TB
	Config
	ctx     context.Context
	ttl     time.Duration // short enough that the case may wait for its end
	virtual bool
	can     driver.Capabilities
	shows   inspect.Inspector // nil if the backend cannot show its queue
	calls   sync.WaitGroup    // of Wait, under way
	open    []driver.Closer
}

// Context is that of the case. It ends with the case, or when that has taken too long.
func (e *env) Context() context.Context { return e.ctx }

// need is what a case cannot do without.
type need struct {
	what string
	met  func(e *env) bool
}

type testCase struct {
	name  string
	needs []need
	crowd bool // dozens of callers keep the machine busy: two crowds take turns
	run   func(e *env)
}

// The needs of cases.
var (
	fenced  = need{"fences", func(e *env) bool { return e.can.Fence }}
	blocks  = need{"blocks of fences", func(e *env) bool { return e.can.Block }}
	shares  = need{"shared claims", func(e *env) bool { return e.can.Shared }}
	limits  = need{"limits", func(e *env) bool { return e.can.Limit }}
	dedups  = need{"dedup markers", func(e *env) bool { return e.can.Dedup }}
	keeps   = need{"Keep", func(e *env) bool { return e.can.Keep }}
	hands   = need{"hand-offs", func(e *env) bool { return e.can.Detach }}
	queues  = need{"a queue", func(e *env) bool { return e.can.Queue }}
	ordered = need{"an order that a slow network keeps", func(e *env) bool { return !e.Overtaken }}
	foreign = need{"other software at the service", func(e *env) bool { return e.Overwrite != nil }}
	deletes = need{"a way to delete what is there", func(e *env) bool { return e.Delete != nil }}
	whole   = need{"a foreign value written in one step", func(e *env) bool { return !e.Stepwise }}
	wires   = need{"connections to break", func(e *env) bool { return e.Through != nil }}
	says    = need{"messages", func(e *env) bool { return e.Messages != nil }}
	nowhere = need{"a service that cannot be reached", func(e *env) bool { return e.Unreachable != nil }}
	servers = need{"servers to kill", func(e *env) bool { return e.Own != nil }}
	seen    = need{"a view of what is left", func(e *env) bool { return e.Leftovers != nil }}
)

// part is the cases of one capability.
type part struct {
	name  string
	cases []testCase
}

// suite returns all cases.
func suite() []part {
	return []part{
		{"grant", grantCases}, {"renew", renewCases}, {"fence", fenceCases}, {"wait", waitCases}, {"queue", queueCases}, {"direct", directCases},
		{"shared", sharedCases}, {"limit", limitCases}, {"dedup", dedupCases}, {"keep", keepCases}, {"handoff", handoffCases},
		{"foreign", foreignCases}, {"inspect", inspectCases}, {"network", networkCases}, {"between", betweenCases}, {"outage", outageCases},
	}
}

// each does something with each case of the parts, or of all.
func each(parts []string, do func(c testCase)) {
	for _, p := range suite() {
		if len(parts) > 0 && !slices.Contains(parts, p.name) {
			continue
		}
		for _, c := range p.cases {
			do(c)
		}
	}
}

// Run runs the suite in real time, with a parallel subtest for each case. open makes the service of one
// case. parts are the names of the files whose cases are run, such as "wait", if not all are.
func Run(t *testing.T, open func(t testing.TB) Config, parts ...string) {
	t.Helper()
	each(parts, func(c testCase) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.crowd {
				crowds.Lock()
				defer crowds.Unlock()
			}
			c.in(t, open, false)
		})
	})
}

var crowds sync.Mutex // held by the case that is a crowd

// RunInBubble runs the suite, or parts of it, inside testing/synctest bubbles, on their time.
func RunInBubble(t *testing.T, open func(t testing.TB) Config, parts ...string) {
	t.Helper()
	each(parts, func(c testCase) {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.in(t, open, true) })
		})
	})
}

// in runs the case. A case whose calls do not return has their contexts end after a long time.
func (c *testCase) in(t testing.TB, open func(t testing.TB) Config, virtual bool) {
	t.Helper()
	e := &env{TB: t, virtual: virtual, ttl: 2 * time.Second}
	patience := 3 * time.Minute
	if virtual {
		e.ttl, patience = 10*time.Second, time.Hour
	}
	var cancel context.CancelFunc
	e.ctx, cancel = context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	e.Config = open(t)
	if e.Close != nil {
		defer e.Close()
	}
	defer e.close()
	defer e.calls.Wait()
	defer cancel()
	makes := e.Driver
	e.Driver = func() driver.Driver { return e.opened(makes()) }
	d := e.Driver()
	e.can = d.Capabilities()
	e.shows, _ = d.(inspect.Inspector)
	e.ttl = max(e.ttl, e.can.MinTTL)
	for _, n := range c.needs {
		if !n.met(e) {
			t.Skip("this backend does not have " + n.what)
		}
	}
	c.run(e)
}

// opened has d closed at the end of the case.
func (e *env) opened(d driver.Driver) driver.Driver {
	if c, ok := d.(driver.Closer); ok {
		e.open = append(e.open, c)
	}
	return d
}

func (e *env) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, c := range e.open {
		_ = c.Close(ctx) // what is left ends by itself
	}
}

// claim makes a claim with a token of its own, for one TTL.
func (e *env) claim(name string) driver.Claim {
	return driver.Claim{Name: name, Token: token(), TTL: e.ttl}
}

// long makes a claim whose TTL gives heartbeats time on a busy machine. A case need not wait for its end.
func (e *env) long(name string) driver.Claim {
	c := e.claim(name)
	c.TTL = max(e.ttl, 6*time.Second)
	return c
}

// lasting makes a claim that outlasts the case.
func (e *env) lasting(name string) driver.Claim {
	c := e.claim(name)
	c.TTL = 2 * time.Minute
	return c
}

var tokens atomic.Uint64

const tokenPrefix = "token-"

func token() string { return fmt.Sprintf("%s%016d", tokenPrefix, tokens.Add(1)) }

// noError fails the case if there is one. It is for the case's own goroutine.
func (e *env) noError(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// tries are enough for what takes long on a machine that is busy.
const tries = 2000

// eventually waits for cond, for a long time. It checks that something happens, not when.
func (e *env) eventually(what string, cond func() bool) {
	e.Helper()
	for range tries {
		if cond() {
			return
		}
		e.sleep(e.ttl / 100)
	}
	e.Fatalf("never came true: %s", what)
}

func (e *env) sleep(d time.Duration) {
	e.Helper()
	select {
	case <-time.After(d):
	case <-e.ctx.Done():
		e.Fatal("the case has taken too long")
	}
}

// rounds is how often a case repeats what mostly ends well: with -short, fewer times in real time.
func (e *env) rounds(n int) int {
	if testing.Short() && !e.virtual {
		return (n + 3) / 4
	}
	return n
}

// within fails the case unless f returns within d, and a little slack in real time.
func (e *env) within(d time.Duration, what string, f func()) {
	e.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > d+e.slack() {
		e.Errorf("%s took %s, more than %s", what, took, d)
	}
}

// slack allows for a machine that is busy with something else.
func (e *env) slack() time.Duration {
	if e.virtual {
		return 4 * e.Slow
	}
	return 10*time.Second + 20*e.Slow
}

// done returns a context that has ended.
func done() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
