package core

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// heard is what a queue knows of its contender's attempts since the name was last granted.
type heard struct {
	last     seen        // what the last one came to
	watchers []chan seen // of those who want to know of the next one
}

// seen is what an attempt came to, for those who did not make it. The zero seen says
// nothing.
type seen struct {
	at       time.Time
	answered time.Time    // when the backend last answered
	held     *driver.Held // the name has an owner, if only since this attempt
	heldAt   clock.Awake  // when the backend last said so, since the Locker was made; 0 if it has not
	done     *DuplicateError
	scope    string // of done
	err      error  // matches ErrUnavailable
}

func (v seen) empty() bool { return v.held == nil && v.done == nil && v.err == nil }

// concerns says whether it is an answer to whoever wants the name by c, too.
func (v seen) concerns(c *config) bool {
	return v.held != nil || v.err != nil || v.done != nil && c.dedup > 0 && v.scope == c.scope
}

// watch has the caller told what the contender's attempt comes to.
func (s *names) watch(w *waiter) <-chan seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.queue == nil { // its lease is waiting for it
		return nil
	}
	return w.queue.watch()
}

// known says what the queue knows.
func (s *names) known(w *waiter) (v seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := w.queue
	if q == nil {
		return v
	}
	if q.heard != nil {
		v = q.heard.last
	}
	if held := s.holders.held(q.key); held != nil {
		v.at, v.held = time.Now(), held
	}
	return v
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
