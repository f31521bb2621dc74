package core

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/callctx"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
)

// engine is what a Locker and all Lockers derived from it share.
type engine struct {
	driver   driver.Driver
	queuer   driver.Queuer  // nil if the backend has none
	yielder  driver.Yielder // as above
	can      driver.Capabilities
	clock    *clock.Clock
	events   *events
	watchdog *watchdog
	names    *names
	sweeper  *sweep.Sweeper

	maxLeases, maxWaiters int
	waiters               atomic.Int64 // calls that may wait

	hanging atomic.Int32 // calls that clean up, and have outlived their time

	latency   latency
	outage    outage
	calls     callctx.Pool    // contexts of driver calls
	closing   chan struct{}   // closed when Close begins
	life      context.Context // ends then too
	die       context.CancelFunc
	closeOnce atomic.Bool
	tasks     atomic.Int64  // calls and goroutines under way
	quiet     chan struct{} // of size one: tasks or tenures reached zero while closing
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
	r.queuer, _ = d.(driver.Queuer)
	r.yielder, _ = d.(driver.Yielder)
	r.watchdog = newWatchdog(r)
	r.sweeper = sweep.New(r.spawn)
	return r
}

// enter and leave stand around every call and goroutine that Close must wait for.
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

// callApart makes one driver call on a goroutine of its own and waits for its outcome until ctx
// ends: there are clients whose reads nothing interrupts, and every call of ours has a
// bound. When ctx ends first, ok is false, and late, if there is one, gets the outcome once
// it is known.
func callApart[T any](ctx context.Context, r *engine, call func(context.Context) T, late func(T)) (result T, ok bool) {
	answer := make(chan T, 1)
	var left atomic.Bool
	r.spawn(func() {
		answer <- call(ctx)
		// The caller leaves first and looks a last time then, so one of the two sees the
		// outcome, and only one.
		if left.Load() {
			select {
			case v := <-answer:
				if late != nil {
					late(v)
				}
			default:
			}
		}
	})
	select {
	case result = <-answer:
		return result, true
	case <-ctx.Done():
	}
	left.Store(true)
	select {
	case result = <-answer:
		return result, true
	default:
		return result, false
	}
}
