package core

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/callctx"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
	"github.com/holdfast-go/holdfast/core/key"
)

// engine is what a Locker and all Lockers derived from it share.
type engine struct {
	driver   driver.Driver
	queuer   driver.Queuer  // nil if the backend is none
	offerer  driver.Offerer // as above
	can      driver.Capabilities
	clock    *clock.Clock
	events   *events
	watchdog *watchdog
	names    *names
	sweeper  *sweep.Sweeper

	maxLeases, maxWaiters int
	waiters               atomic.Int64 // calls that wait, or may have to

	hanging atomic.Int32 // clean-up calls that have outlived their time and still run

	latency   latency
	outage    outage
	calls     callctx.Pool    // contexts of driver calls
	gate      gate            // for new work
	closing   chan struct{}   // closed when Close begins
	life      context.Context // ends then too
	die       context.CancelFunc
	closeOnce atomic.Bool
	tasks     atomic.Int64  // goroutines under way
	quiet     chan struct{} // of size one: tasks or tenures may have reached zero
}

func newEngine(d driver.Driver, c *config) *engine {
	r := &engine{
		driver:  d,
		can:     d.Capabilities(),
		clock:   clock.New(),
		events:  newEvents(c),
		names:   newNames(),
		closing: make(chan struct{}),
		quiet:   make(chan struct{}, 1),

		maxLeases:  c.maxLeases,
		maxWaiters: c.maxWaiters,
	}
	r.life, r.die = context.WithCancel(context.Background())
	r.gate = newGate(r.life)
	r.queuer, _ = d.(driver.Queuer)
	r.offerer, _ = d.(driver.Offerer)
	r.watchdog = newWatchdog(r)
	r.sweeper = sweep.New(r.spawn)
	return r
}

func (r *engine) checkName(name string) error {
	if limit := r.can.MaxName; limit > 0 && len(name) > limit {
		return invalidf("name: %d bytes, and the %s backend takes %d", len(name), r.can.Backend, limit)
	}
	return key.CheckName(name)
}

// enter and leave stand around every goroutine that Close must wait for, as call and called stand around
// every call.
func (r *engine) enter() { r.tasks.Add(1) }

func (r *engine) leave() {
	if r.tasks.Add(-1) == 0 {
		r.stirred()
	}
}

func (r *engine) stirred() {
	select {
	case r.quiet <- struct{}{}:
	default:
	}
}

// spawn runs f on a goroutine that Close waits for.
func (r *engine) spawn(f func()) {
	r.enter()
	go func() {
		defer r.leave()
		f()
	}()
}

func (r *engine) closed() bool {
	select {
	case <-r.closing:
		return true
	default:
		return false
	}
}

func (r *engine) close(ctx context.Context) error {
	if r.closeOnce.CompareAndSwap(false, true) {
		close(r.closing)
		r.die()
		r.watchdog.close()
		r.sweeper.Close()
	}
	for r.watchdog.remaining() > 0 || r.tasks.Load() > 0 || r.gate.calls.Load() > 0 {
		select {
		case <-r.quiet:
		case <-ctx.Done():
			n := r.watchdog.abandon()
			return fmt.Errorf("holdfast: close: %d leases still in use are left to their TTL: %w", n, ctx.Err())
		}
	}
	r.stirred() // for another Close that waits
	r.watchdog.abandon()
	if idle, ok := r.driver.(driver.IdleCloser); ok {
		if err := idle.CloseIdle(ctx); err != nil {
			return fmt.Errorf("holdfast: close: %w", err)
		}
	}
	return nil
}

// seconds is the age of the Locker in whole seconds, plus one.
func (r *engine) seconds() uint32 {
	return uint32(time.Duration(r.clock.Now())/time.Second) + 1 //nolint:gosec // G115: no process lives for 136 years
}

// past is how long ago since was, at least.
func (r *engine) past(since uint32) time.Duration {
	return time.Duration(max(r.seconds(), since+1)-since-1) * time.Second
}
