package core

import (
	"sync"
)

const maxEvents = 1024

// events hands events over to an Observer and a logger, in order. The mutex protects the queue and
// the counts.
type events struct {
	observer *Observer
	log      *operatorLog // nil if there is no logger

	batch []any // what is being told; used by one goroutine at a time, without the mutex

	mu      sync.Mutex // protects the fields below
	queue   []any
	dropped int                    // events
	fresh   int                    // of them, those since the last batch was made
	missed  map[string]MissedEvent // by template, of dropped events
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
		e.log = &operatorLog{logger: c.logger, names: c.names}
	}
	return e
}

// add never blocks and never calls user code. A nil receiver observes nothing.
func (e *events) add(r *engine, event any) {
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
		r.spawn(func() { e.drain(r) })
	}
}

// drop forgets an event, but still counts the lease that began or ended with it. If the dropped
// event was itself about dropped events, its numbers are kept for the next time. The caller holds
// the mutex.
func (e *events) drop(event any) {
	switch event := event.(type) {
	case MissedEvent:
		e.miss(event.Template, event.Leases, event.Waiters)
		return
	case drops:
		e.dropped += event.all
		return
	case AcquiredEvent:
		if !event.Reentry {
			e.miss(event.Template, 1, 0)
		}
	case ReleasedEvent:
		e.miss(event.Template, -1, 0)
	case UnconfirmedEvent:
		e.miss(event.Template, -1, 0)
	case LostEvent:
		e.miss(event.Template, -1, 0)
	case WaitingEvent:
		e.miss(event.Template, 0, 1)
	case WaitedEvent:
		e.miss(event.Template, 0, -1)
	}
	e.dropped++
	e.fresh++
}

// miss counts leases and waits that began with a dropped event, minus those that ended with one. The
// caller holds the mutex.
func (e *events) miss(template string, leases, waiters int) {
	if e.missed == nil {
		e.missed = make(map[string]MissedEvent)
	}
	m := e.missed[template]
	e.missed[template] = MissedEvent{template, m.Leases + leases, m.Waiters + waiters}
}

// drain runs while there is something to tell, and no longer, so an idle Locker has no goroutine.
// If the user's code ends this goroutine, another one goes on.
func (e *events) drain(r *engine) {
	over := false
	defer func() {
		if !over {
			r.spawn(func() { e.drain(r) })
		}
	}()
	for len(e.batch) > 0 || e.nextBatch() {
		event := e.batch[0]
		e.batch = e.batch[1:]
		e.hand(event)
	}
	over = true
}

// nextBatch makes a batch of everything that there is to tell. It says whether there is anything.
func (e *events) nextBatch() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 && e.fresh == 0 {
		e.batch, e.running = nil, false
		return false
	}
	e.batch, e.queue = e.queue, nil
	for _, missed := range e.missed {
		if missed.Leases != 0 || missed.Waiters != 0 {
			e.batch = append(e.batch, missed)
		}
	}
	if e.dropped > 0 {
		e.batch = append(e.batch, drops{e.dropped, e.fresh})
	}
	e.dropped, e.fresh, e.missed = 0, 0, nil
	return true
}

// hand writes an event to the log and tells the observer. A panic of the observer ends here.
func (e *events) hand(event any) {
	told := false
	defer func() {
		if told {
			return
		}
		panicked := recover() // nil if it is runtime.Goexit, which goes on
		e.mu.Lock()
		e.drop(event)
		e.mu.Unlock()
		e.log.panicked(event, panicked)
	}()
	e.log.write(event)
	e.observer.tell(event)
	told = true
}

func (o *Observer) tell(event any) {
	switch event := event.(type) {
	case AcquiredEvent:
		call(o.Acquired, event)
	case HeldEvent:
		call(o.Held, event)
	case WaitingEvent:
		call(o.Waiting, event)
	case LongWaitEvent:
		call(o.LongWait, event)
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
	case MissedEvent:
		call(o.Missed, event)
	case drops:
		call(o.Dropped, event.all)
	}
}

func call[E any](f func(E), event E) {
	if f != nil {
		f(event)
	}
}
