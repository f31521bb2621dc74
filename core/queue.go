package core

import (
	"sync/atomic"
	"time"
)

// queue is the goroutines of this process that wait for one name, in the order of their arrival. It is there
// while somebody waits.
//
// The first of a queue is its contender: it alone asks the backend, and the others wait in
// memory. So a process costs the backend one client for each name, however many goroutines want
// it. While this process holds the name nobody asks: they are given turns of its tenure, or woken
// when it ends.
//
// The mutex of names protects all of it.
type queue struct {
	key    string // "" for one of its own, of a call that waits for nobody of this process: see names.joinNone
	head   *waiter
	tail   *waiter
	trying bool          // the contender's attempt is under way
	freed  bool          // this process had the name until now, and nothing was heard of it since
	askAt  time.Time     // when somebody is to ask, after contenders that gave up
	gap    time.Duration // between the last of those and that
	heard  *heard        // nil if there is nothing
	place  *place        // in the backend's queue, nil if this process has none there
}

// place is this process's place in the backend's queue for a name: that of the queue here, not of
// a goroutine. Once it is left, it is never used again.
type place struct {
	id    string
	left  chan struct{} // closed when it is
	doubt atomic.Uint32 // when a command that lines it up was given up, as token.since; 0 if none was
}

// waiter is one call in a queue.
type waiter struct {
	cfg   *config
	lease *Lease // for the turn it may be given; made by its caller, whose context that asks

	// Protected by names.mu.
	queue      *queue // nil once it has been given a lease
	next, prev *waiter
	contends   bool

	woken chan wakeup // of size one, for those who are not the contender from the start
}

// wakeup is what a waiter is woken with.
type wakeup struct {
	lease *Lease        // its turn of the tenure that this process has; nil: it is the contender now
	old   *tenure       // whose turns are over, for the contender to yield; or nil
	held  bool          // this process had the name until now
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

// contends says whether w is the contender of this queue. The contender of a queue of its own
// is none of the queue of the name that it wants.
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

// wake makes the head the contender, unless it is that already.
func (q *queue) wake(c wakeup) {
	if w := q.head; w != nil && !w.contends {
		w.contends = true
		w.woken <- c // it is woken only once
	}
}

// leaveBackend ends this process's place in the backend's queue, if nobody is left who needs it. The
// result is the caller's to leave there.
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
	last     seen        // what the last one came to
	watchers []chan seen // of those who want to know of the next one
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
		outcome <- v // has room for the only one it ever gets
	}
	h.watchers = nil
}

// How long the successor of a contender that has given up pauses before it asks: longer and
// longer, while others give up.
const (
	firstGap = time.Millisecond
	lastGap  = 8 * time.Millisecond
)

// succession is that pause. Mostly the successor's own context ends together with that of the one
// before, and with those of the others behind it: a thousand of them would ask, and clean up, one
// after the other. But somebody does ask when the pause is over, however many give up in it: all
// who come in between wait for the same instant.
//
// Nobody listens to the backend meanwhile, as nobody did while this process passed on whose turn
// it is. What it is told then is found out by whoever asks.
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
