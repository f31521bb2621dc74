package core

import (
	"context"
	"sync"
	"time"
)

// Observer is told what happens to leases. Nil functions are skipped.
//
// The functions are called one after the other on a goroutine of their own, never on the
// path of an acquire, a renewal or a release. While one of them blocks, up to 1024 events
// wait; those beyond are dropped, and Missed and Dropped are told.
//
// A lease that is no re-entry is told of twice, whatever becomes of it: by Acquired, and by
// one of Released, Unconfirmed and Lost. Only what a Close leaves to its TTL has no end. Who
// counts leases so, and adds what Missed says, is right in the long run.
//
// Every event has the Template of [WithTemplate], which has few values, and the Name,
// which can have millions: use the template for metrics. No event has a token. Package
// telemetry makes metrics and spans of events.
type Observer struct {
	Acquired    func(AcquiredEvent)
	Held        func(HeldEvent)
	Waited      func(WaitedEvent)
	Failed      func(FailedEvent)
	Limited     func(LimitedEvent)
	Degraded    func(DegradedEvent)
	Renewed     func(RenewedEvent)
	Lost        func(LostEvent)
	Released    func(ReleasedEvent)
	Unconfirmed func(UnconfirmedEvent)
	Missed      func(MissedEvent)
	Dropped     func(events int)
}

// Subject says what an event is about, and when it happened.
type Subject struct {
	Template string // of WithTemplate; the key template of a door
	Name     string
	// Context has the values of the context that the lease was asked for with, such as the
	// caller's span. It never ends.
	Context context.Context
	At      time.Time // observers are told later
}

// subject is called only if somebody observes: it allocates.
func (c *config) subject(ctx context.Context, name string) Subject {
	return Subject{c.template, name, context.WithoutCancel(ctx), time.Now()}
}

// AcquiredEvent: a lease was granted. If its caller had gone by then, it was given back at
// once, and a FailedEvent says what the caller got.
type AcquiredEvent struct {
	Subject
	Took    time.Duration // from the call, waiting included
	Fence   uint64
	Reentry bool // it joined a lease that its context already had
	// Degraded: the lease excludes others in this process only. If it is no re-entry, a
	// DegradedEvent says why.
	Degraded bool
}

// DegradedEvent: an acquire got a lease that excludes others in this process only, as
// [OnUnavailable] allows. Acquired is told of it, too.
type DegradedEvent struct {
	Subject
	Took time.Duration
	Err  error // matches ErrUnavailable: why the backend could not answer
}

// HeldEvent: an acquire ended with ErrHeld.
type HeldEvent struct {
	Subject
	Took time.Duration
}

// WaitedEvent: an acquire found the name held and waited; it tells how that ended.
type WaitedEvent struct {
	Subject
	Took time.Duration
	Err  error // nil if the lease was granted
}

// FailedEvent: an acquire ended with neither a lease nor ErrHeld.
type FailedEvent struct {
	Subject
	Took time.Duration
	Err  error
}

// LimitedEvent: an acquire gave a larger [WithLimit] than somebody who holds the name. A
// rollout that changes the limit is seen so; for longer, it is two programs that disagree.
type LimitedEvent struct {
	Subject
	Asked  int
	Counts int // the smallest limit, by which the acquire was judged
}

// RenewedEvent: one lease's renewal was answered, or was not.
type RenewedEvent struct {
	Subject
	Took time.Duration
	// Err is nil if the lease was renewed. It matches ErrLost if the name is no longer ours,
	// and ErrUnavailable if there was no answer in time: then it is tried again.
	Err error
}

// LostEvent: a lease was lost while it was held. How its release goes, after
// [ReasonMaxHold], is not told.
type LostEvent struct {
	Subject
	Reason Reason
	Held   time.Duration
}

// ReleasedEvent: a lease was given back.
type ReleasedEvent struct {
	Subject
	Held time.Duration
	Done bool // a dedup marker was left

	Detached bool // the name stays taken, for whoever has the ticket
	// Degraded: it was a lease of this process only, of which the backend was not told.
	Degraded bool
}

// UnconfirmedEvent: whether a release took effect is unknown. If it did not, the name
// comes free when its TTL ends.
type UnconfirmedEvent struct {
	Subject
	Held time.Duration
	Err  error
}

// MissedEvent: of the leases of a template, so many more were granted than ended in events
// that were dropped; fewer, if it is negative. Re-entries do not count.
type MissedEvent struct {
	Template string
	Leases   int
}

const maxEvents = 1024

// events hands events over to an Observer and a logger, in order.
type events struct {
	observer *Observer
	log      *logbook // nil if nobody reads it

	mu      sync.Mutex // protects the fields below
	queue   []any
	dropped int
	missed  map[string]int // by template: leases granted, minus those that ended, in dropped events
	running bool
}

func newEvents(c *config) *events {
	if c.observer == nil && c.logger == nil {
		return nil
	}
	e := &events{observer: c.observer}
	if e.observer == nil {
		e.observer = &Observer{}
	}
	if c.logger != nil {
		e.log = &logbook{logger: c.logger}
	}
	return e
}

// add never blocks and never calls user code. A nil receiver observes nothing.
func (e *events) add(r *root, event any) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == maxEvents {
		e.drop(event)
		return
	}
	e.queue = append(e.queue, event)
	if !e.running {
		e.running = true
		r.spawn(e.drain)
	}
}

// drop forgets an event, but not the lease that came or went with it.
func (e *events) drop(event any) {
	e.dropped++
	if e.missed == nil {
		e.missed = make(map[string]int)
	}
	switch event := event.(type) {
	case AcquiredEvent:
		if !event.Reentry {
			e.missed[event.Template]++
		}
	case ReleasedEvent:
		e.missed[event.Template]--
	case UnconfirmedEvent:
		e.missed[event.Template]--
	case LostEvent:
		e.missed[event.Template]--
	}
}

// drain runs while there is something to tell, and no longer: an idle Locker has no
// goroutine.
func (e *events) drain() {
	for {
		e.mu.Lock()
		queue, dropped, missed := e.queue, e.dropped, e.missed
		e.queue, e.dropped, e.missed = nil, 0, nil
		if len(queue) == 0 {
			e.running = false
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		for _, event := range queue {
			e.log.write(event)
			e.observer.tell(event)
		}
		for template, leases := range missed {
			if leases != 0 {
				call(e.observer.Missed, MissedEvent{template, leases})
			}
		}
		if dropped > 0 {
			e.log.drop(dropped, time.Now())
			call(e.observer.Dropped, dropped)
		}
	}
}

func (o *Observer) tell(event any) {
	switch event := event.(type) {
	case AcquiredEvent:
		call(o.Acquired, event)
	case HeldEvent:
		call(o.Held, event)
	case WaitedEvent:
		call(o.Waited, event)
	case FailedEvent:
		call(o.Failed, event)
	case LimitedEvent:
		call(o.Limited, event)
	case DegradedEvent:
		call(o.Degraded, event)
	case RenewedEvent:
		call(o.Renewed, event)
	case LostEvent:
		call(o.Lost, event)
	case ReleasedEvent:
		call(o.Released, event)
	case UnconfirmedEvent:
		call(o.Unconfirmed, event)
	}
}

func call[E any](f func(E), event E) {
	if f != nil {
		f(event)
	}
}
