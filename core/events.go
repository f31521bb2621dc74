package core

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/tasks"
)

const maxEvents = 1024

// events hands events over to one observer, in order.
type events struct {
	observer func(Event)
	wants    func(kind EventKind, failed bool) bool // nil: all events
	tasks    *tasks.Group
	log      *events // is told of what was dropped and of panics; nil for the log itself

	batch []Event // what is being told; used by one goroutine at a time, without the mutex

	mu      sync.Mutex // protects the fields below; a leaf
	queue   []Event
	dropped int              // events
	fresh   int              // of them, those since the last batch was made
	missed  map[string]Event // by template, of dropped events
	running bool
}

// observed says whether anybody wants an event of this kind, with an error or without.
func (r *engine) observed(kind EventKind, failed bool) bool {
	return len(r.observers) > 0 || r.log != nil && r.log.wants(kind, failed)
}

// observes is observed for a kind of which no error is wanted alone.
func (r *engine) observes(kind EventKind) bool { return r.observed(kind, false) }

// tell never blocks and never calls user code.
func (r *engine) tell(e Event) {
	for _, o := range r.observers {
		o.add(e)
	}
	if r.log != nil && r.log.wants(e.Kind, e.Err != nil) {
		r.log.add(e)
	}
}

func (o *events) add(e Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == maxEvents {
		o.drop(e)
		return
	}
	o.queue = append(o.queue, e)
	if !o.running {
		o.running = true
		o.tasks.Go(o.drain)
	}
}

// drop forgets an event, but still counts the lease that began or ended with it. If the dropped event was itself about
// dropped events, its numbers are kept for the next time. The caller holds the mutex.
func (o *events) drop(e Event) {
	switch e.Kind {
	case EventMissed:
		o.miss(e.Template, e.Leases, e.Waiters)
		return
	case EventDropped:
		o.dropped += e.Dropped
		return
	case EventAcquired:
		if !e.Reentry {
			o.miss(e.Template, 1, 0)
		}
	case EventReleased, EventUnconfirmed, EventLost:
		o.miss(e.Template, -1, 0)
	case EventWaiting:
		o.miss(e.Template, 0, 1)
	case EventWaited:
		o.miss(e.Template, 0, -1)
	default:
	}
	o.dropped++
	o.fresh++
}

// miss counts leases and waits that began with a dropped event, minus those that ended with one. The caller holds the
// mutex.
func (o *events) miss(template string, leases, waiters int) {
	if o.missed == nil {
		o.missed = make(map[string]Event)
	}
	m := o.missed[template]
	o.missed[template] = Event{Kind: EventMissed, Template: template, Leases: m.Leases + leases, Waiters: m.Waiters + waiters}
}

// drain runs while there is something to tell, and no longer, so an idle Locker has no goroutine. If the user's code ends
// this goroutine, another one goes on.
func (o *events) drain() {
	over := false
	defer func() {
		if !over {
			o.tasks.Go(o.drain)
		}
	}()
	for len(o.batch) > 0 || o.nextBatch() {
		e := o.batch[0]
		o.batch = o.batch[1:]
		o.hand(e)
	}
	over = true
}

// nextBatch makes a batch of everything that there is to tell. It says whether there is anything.
func (o *events) nextBatch() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 && o.fresh == 0 {
		o.batch, o.running = nil, false
		return false
	}
	o.batch, o.queue = o.queue, nil
	for _, missed := range o.missed {
		if missed.Leases != 0 || missed.Waiters != 0 {
			o.batch = append(o.batch, missed)
		}
	}
	if o.dropped > 0 {
		e := Event{Kind: EventDropped, At: time.Now(), Dropped: o.dropped}
		o.batch = append(o.batch, e)
		if o.log != nil {
			o.log.add(e)
		}
	}
	o.dropped, o.fresh, o.missed = 0, 0, nil
	return true
}

// hand tells the observer. A panic of it ends here.
func (o *events) hand(e Event) {
	told := false
	defer func() {
		if told {
			return
		}
		value := recover() // nil if it is runtime.Goexit, which goes on
		if o.log != nil {
			o.log.add(panicOf("an observer", "its event counts as dropped", value))
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.drop(e)
	}()
	o.observer(e)
	told = true
}
