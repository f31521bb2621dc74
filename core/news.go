package core

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// news is what is known of the contender's attempts since the name was last granted.
type news struct {
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
func (s *lines) watch(w *waiter) <-chan seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.line == nil { // its lease is waiting for it
		return nil
	}
	return w.line.outcome()
}

func (l *line) outcome() <-chan seen {
	outcome := make(chan seen, 1)
	n := l.hear()
	n.watchers = append(n.watchers, outcome)
	return outcome
}

func (l *line) hear() *news {
	if l.news == nil {
		l.news = new(news)
	}
	return l.news
}

func (n *news) publish(v seen) {
	if n == nil {
		return
	}
	for _, outcome := range n.watchers {
		outcome <- v // has room for the only seen it ever gets
	}
	n.watchers = nil
}

// known says what the line knows.
func (s *lines) known(w *waiter) (v seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := w.line
	if l == nil {
		return v
	}
	if l.news != nil {
		v = l.news.last
	}
	if held := l.heldHere(); held != nil {
		v.at, v.held = time.Now(), held
	}
	return v
}
