package core

import (
	"sync/atomic"
	"time"
)

// queue is the goroutines of this process that wait for one name, in the order of their arrival. It
// exists while somebody waits.
//
// The first waiter of a queue is its contender. It alone asks the backend; the others wait in
// memory. So a process costs the backend one client for each name, however many goroutines want it.
// While this process holds the name, nobody asks: the waiters are given turns of its tenure, or are
// woken when it ends.
//
// The mutex of names protects all fields, and those of heard. The methods of both are called
// with that mutex held.
type queue struct {
	key    string // "" for the own queue of a call that waits for nobody of this process: see names.joinNone
	head   *waiter
	tail   *waiter
	listed bool          // among names.queues
	trying bool          // the contender's attempt is under way
	freed  bool          // this process had the name until now, and there was no answer about it since
	askAt  time.Time     // when the next contender may ask, after others gave up
	gap    time.Duration // the last pause: from when a contender gave up until askAt
	heard  *heard        // what is known; nil if nothing is
	place  *place        // in the backend's queue; nil if this process has none there
}

// place is this process's place in the backend's queue for a name. It belongs to the queue here,
// not to a goroutine. Once it is left, it is never used again.
type place struct {
	id    string
	left  chan struct{} // closed when the place is left
	doubt atomic.Uint32 // when a command that puts it in the backend's queue was given up, as token.since; 0 if none was

	offers uint64 // how many were made at this place, and so the number of the last one; protected by names.mu
}

// offer is a claim that the backend may grant at any time, since it stands at a place.
type offer struct {
	at     *place // nil if there is none
	number uint64
}

// waiter is one call in a queue.
type waiter struct {
	cfg   *config
	call  *acquisition // for when it began; nil for a call that waits for nobody
	lease *Lease       // for a turn that it may be given; made by its caller, because that calls methods of its context

	// Protected by names.mu.
	queue      *queue // nil once it was given a lease
	next, prev *waiter
	contends   bool

	woken chan wakeup // of size one; nil for a waiter that is the contender from the start
}

// wakeup is what a waiter is woken with.
type wakeup struct {
	lease *Lease        // its turn of the tenure that this process has; nil if it is the contender now
	held  bool          // this process had the name until now
	queue bool          // and others waited at the backend while it was granted
	pause time.Duration // before it asks
}

func (q *queue) push(w *waiter) {
	w.queue, w.prev = q, q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
}

// contends says whether w is the contender of this queue. The contender of a queue of its own is
// not the contender in the queue of the name that it wants.
func (q *queue) contends(w *waiter) bool { return w.queue == q && w.contends }

func (q *queue) unlink(w *waiter) {
	if w.queue != q {
		panic("core: a waiter is taken out of a queue in which it does not wait")
	}
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.queue, w.next, w.prev, w.contends = nil, nil, nil, false
}

// wake makes the head the contender, unless it is the contender already.
func (q *queue) wake(c wakeup) {
	if w := q.head; w != nil && !w.contends {
		w.contends = true
		w.woken <- c // never blocks: it is woken only once
	}
}

// lineUp returns the place in the backend's queue, and makes it if there is none.
func (q *queue) lineUp() *place {
	if q.place == nil {
		q.place = &place{id: newSecret(), left: make(chan struct{})}
	}
	return q.place
}

// leaveBackend ends this process's place in the backend's queue, if nobody needs it any more. The
// caller has to leave the returned place there.
func (q *queue) leaveBackend() (empty *place) {
	if q.head != nil || q.place == nil {
		return nil
	}
	empty, q.place = q.place, nil
	close(empty.left)
	return empty
}

// heard is what a queue knows of its contender's attempts since the name was last granted.
type heard struct {
	last     seen        // the outcome of the last attempt
	watchers []chan seen // of callers that want the outcome of the next one
}

func (q *queue) watch() <-chan seen {
	outcome := make(chan seen, 1)
	h := q.hear()
	h.watchers = append(h.watchers, outcome)
	return outcome
}

func (q *queue) hear() *heard {
	if q.heard == nil {
		q.heard = new(heard)
	}
	return q.heard
}

func (h *heard) publish(v seen) {
	if h == nil {
		return
	}
	for _, outcome := range h.watchers {
		outcome <- v // never blocks: it gets only one
	}
	h.watchers = nil
}

// How long the successor of a contender that has given up pauses before it asks. The pause grows
// while others give up.
const (
	firstGap = time.Millisecond
	lastGap  = 8 * time.Millisecond
)

// succession is that pause. Mostly the successor's own context ends together with that of the
// contender before it, and with those of the others behind it. Without a pause, a thousand of them
// would ask and clean up, one after the other. But somebody does ask when the pause is over,
// however many give up during it: all that come in between wait for the same instant.
//
// Nobody listens to the backend meanwhile. Nobody listened either while this process passed turns
// on. What the backend says in that time is found out by whoever asks next.
func (q *queue) succession(now time.Time) time.Duration {
	switch since := now.Sub(q.askAt); {
	case since < 0:
		return -since
	case since > 2*lastGap:
		q.gap = firstGap
	default:
		q.gap = min(2*q.gap, lastGap)
	}
	q.askAt = now.Add(q.gap)
	return q.gap
}
