package core

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/contend"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
	"github.com/holdfast-go/holdfast/core/key"
)

// engine is what a Locker and all Lockers derived from it share: the rooms, and what is set for all of them.
type engine struct {
	driver    driver.Driver
	can       driver.Capabilities
	clock     *clock.Clock
	room      *contend.Room // carries out the steps
	tasks     *tasks.Group  // goroutines that Close waits for
	calls     *tasks.Group  // that are under way: Drain waits for them, too
	observers []*events
	log       *events // nil if there is none
	work      []func(context.Context, Event) context.Context

	maxLeases, maxWaiters int
	together              atomic.Bool  // some lease does not exclude all others
	waiters               atomic.Int64 // calls that wait, or may have to

	accept context.Context // ends when Drain or Close begins
	refuse context.CancelFunc
	life   context.Context // ends when Close begins
	die    context.CancelFunc

	abandoned atomic.Bool // what is still held is left to its TTL
}

func newEngine(d driver.Driver, c *config) *engine {
	r := &engine{
		driver: d, can: d.Capabilities(), clock: clock.New(), tasks: tasks.New(), calls: tasks.New(), work: c.workContexts,
		maxLeases: c.maxLeases, maxWaiters: c.maxWaiters,
	}
	if !c.silent {
		b := &operatorLog{logger: c.logger, names: c.names}
		r.log = &events{observer: b.observe, wants: b.wants, tasks: r.tasks}
	}
	for _, f := range c.observers {
		r.observers = append(r.observers, &events{observer: f, tasks: r.tasks, log: r.log})
	}
	r.life, r.die = context.WithCancel(context.Background())
	r.accept, r.refuse = context.WithCancel(r.life)
	r.room = contend.NewRoom(r.life, call.New(d, r.clock, r.tasks), (*keeper)(r))
	return r
}

func (r *engine) checkName(name string) error {
	if limit := r.can.MaxName; limit > 0 && len(name) > limit {
		return invalidf("name: %d bytes, and the %s backend takes %d", len(name), r.can.Backend, limit)
	}
	return key.CheckName(name)
}

// keeper is whom holds tell what happens to them by themselves.
type keeper engine

// Lost implements hold.Keeper. The contexts of the work have ended, and observers were told.
func (k *keeper) Lost(h *hold.Hold) {
	k.room.Lost(h)
}

// Renewed implements hold.Keeper.
func (k *keeper) Renewed(h *hold.Hold, took time.Duration, err error) {
	r := (*engine)(k)
	if !r.observed(EventRenewed, err != nil) {
		return
	}
	x := leaseUnder(h) // whose caller may not have h yet
	e := x.cfg.event(x.values(), EventRenewed, x.want.Name)
	e.Took, e.Err = took, renewalError(x.want.Name, err)
	r.tell(e)
}

func renewalError(name string, err error) error {
	switch driver.Explain(err).Kind {
	case driver.Done:
		return nil
	case driver.NotOwner:
		return &LostError{name, ReasonTaken}
	default:
		return &unavailableError{"renew", name, opaque(err)}
	}
}

// leaseUnder is the outermost lease whose turn of h it is, or was last.
func leaseUnder(h *hold.Hold) *Lease { return (*Lease)(h.Want().Work.(*work)) } //nolint:forcetypeassert // want has set it

// close is Locker.Close.
func (r *engine) close(ctx context.Context) error {
	r.die()
	for _, h := range r.room.Dog.AllAtRest() { // who gets another one from now on gives it back
		leaseUnder(h).closed()
	}
	r.room.Desk.Close()
	err := cmp.Or(r.still(ctx), r.tasks.Wait(ctx))
	r.abandoned.Store(true)
	n := r.room.Dog.Abandon()
	if err != nil {
		return fmt.Errorf("holdfast: close: %s still in use, left to the TTL: %w", leases(n), err)
	}
	if c, ok := r.driver.(driver.Closer); ok {
		if err := c.Close(ctx); err != nil {
			return fmt.Errorf("holdfast: close: %w", err)
		}
	}
	return nil
}

// still waits until no call is under way, and nothing is held.
func (r *engine) still(ctx context.Context) (err error) {
	for err == nil && r.calls.Count()+r.room.Dog.Count() > 0 {
		err = cmp.Or(r.calls.Wait(ctx), r.room.Dog.Wait(ctx))
	}
	return err
}
