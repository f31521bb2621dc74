package core

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// lines is this process's queues, one for each name that is wanted or held here.
//
// The first of a line is its contender: it alone asks the backend, and the others stand in
// memory, first come, first served. So a process costs the backend one client for each
// name, however many goroutines want it.
type lines struct {
	mu     sync.Mutex // protects byName and everything in each line
	byName map[string]*line
}

type line struct {
	name     string
	head     *waiter // the contender, nil if nobody waits
	tail     *waiter
	tenure   *tenure // this process holds the name, nil if it does not
	trying   bool    // the contender's attempt is under way
	watchers []chan verdict
	last     verdict // of the contender's last attempt
}

// waiter is one call's place in a line.
type waiter struct {
	line       *line
	next, prev *waiter
	turn       chan struct{} // of size one: it is the contender now
	hint       chan struct{} // of size one: the name may be free now
}

// verdict is what an attempt came to, for those who did not make it. The zero verdict says
// nothing.
type verdict struct {
	at       time.Time
	answered time.Time    // when the backend last answered
	held     *driver.Held // the name has an owner, if only since this attempt
	done     *DoneError
	scope    string // of done
	err      error  // matches ErrUnavailable
}

func (v verdict) empty() bool { return v.held == nil && v.done == nil && v.err == nil }

func newLines() *lines { return &lines{byName: make(map[string]*line)} }

// join puts the caller into the line for name.
func (s *lines) join(name string) (w *waiter, contender bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.push(s.open(name))
}

// joinAlone puts the caller into the line only if nobody of this process stands there or
// holds the name. Otherwise the answer is what this process knows already, or what comes
// out of watch once the attempt under way is over: the zero verdict if that was broken off.
func (s *lines) joinAlone(name string) (w *waiter, known verdict, watch <-chan verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.open(name)
	if held := l.heldHere(); held != nil {
		return nil, verdict{at: time.Now(), held: held}, nil
	}
	if l.head == nil {
		w, _ = s.push(l)
		return w, verdict{}, nil
	}
	if l.trying || l.last.empty() {
		return nil, verdict{}, l.outcome()
	}
	return nil, l.last, nil
}

// watch has the caller told what the contender's attempt comes to.
func (s *lines) watch(w *waiter) <-chan verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.line.outcome()
}

func (l *line) outcome() <-chan verdict {
	outcome := make(chan verdict, 1)
	l.watchers = append(l.watchers, outcome)
	return outcome
}

func (s *lines) open(name string) *line {
	l := s.byName[name]
	if l == nil {
		l = &line{name: name}
		s.byName[name] = l
	}
	return l
}

func (s *lines) push(l *line) (w *waiter, contender bool) {
	w = &waiter{line: l, prev: l.tail, hint: make(chan struct{}, 1)}
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
		w.turn = make(chan struct{}, 1)
	}
	l.tail = w
	return w, l.head == w
}

// heldHere says who of this process holds the name, as far as local clocks can tell.
func (l *line) heldHere() *driver.Held {
	if l.tenure == nil {
		return nil
	}
	left := l.tenure.left()
	if left <= 0 {
		return nil
	}
	return &driver.Held{Label: l.tenure.bid.claim.Label, Remaining: left}
}

// heldHere says whether the contender can save its attempt, since this process holds the
// name.
func (s *lines) heldHere(w *waiter) *driver.Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.line.heldHere()
}

// try says that the contender asks the backend now.
func (s *lines) try(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.line.trying = true
}

// refused tells the line what the contender got.
func (s *lines) refused(w *waiter, v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.line.trying = false
	w.line.last = v
	w.line.publish(v)
}

// granted gives the line the tenure that the contender got.
func (s *lines) granted(w *waiter, t *tenure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := w.line
	l.trying = false
	l.tenure = t
	l.last = verdict{}
	if len(l.watchers) > 0 {
		now := time.Now()
		l.publish(verdict{at: now, answered: now, held: l.heldHere()})
	}
}

func (l *line) publish(v verdict) {
	for _, outcome := range l.watchers {
		outcome <- v // has room for the only verdict it ever gets
	}
	l.watchers = nil
}

// known says what the line knows.
func (s *lines) known(w *waiter) verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := w.line.last
	if held := w.line.heldHere(); held != nil {
		v.at, v.held = time.Now(), held
	}
	return v
}

// leave takes the caller out of its line; the next one becomes the contender.
func (s *lines) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := w.line
	contender := l.head == w
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	if contender {
		if l.trying || l.head == nil { // it was cut off: whoever watched tries itself
			l.trying = false
			l.publish(verdict{})
		}
		if l.head != nil {
			l.head.turn <- struct{}{} // it becomes the contender only once
		}
	}
	s.prune(l)
}

// vacate says that t no longer holds its name.
func (s *lines) vacate(t *tenure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byName[t.bid.claim.Name]
	if l == nil || l.tenure != t {
		return
	}
	l.tenure = nil
	if l.head != nil {
		select {
		case l.head.hint <- struct{}{}:
		default: // one hint is enough
		}
	}
	s.prune(l)
}

func (s *lines) prune(l *line) {
	if l.head == nil && l.tenure == nil {
		delete(s.byName, l.name)
	}
}
