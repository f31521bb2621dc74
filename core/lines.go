package core

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// lines is this process's queues, one for each name that is wanted or held here; those who
// share a name stand in one of their own, as config.line says.
//
// The first of a line is its contender: it alone asks the backend, and the others stand in
// memory, first come, first served. So a process costs the backend one client for each
// name, however many goroutines want it. While this process holds the name nobody asks:
// they are given turns of its tenure, or called up when it ends.
type lines struct {
	mu     sync.Mutex // protects the maps and everything in each line
	byKey  map[string]*line
	beside map[string]int // by name: the tenures of this process that leave it to others, too
}

type line struct {
	key    string
	head   *waiter // nil if nobody waits
	tail   *waiter
	tenure *tenure       // by which this process alone has the name, until its release is over; or nil
	trying bool          // the contender's attempt is under way
	freed  bool          // this process had the name until now, and nothing was heard of it since
	askAt  time.Time     // when somebody is to ask, after contenders that gave up
	gap    time.Duration // between the last of those and that
	news   *news         // nil if there is none
	place  *place        // in the backend's line, nil if this process does not stand there
}

// place is this process's place in the backend's line for a name: that of the line, not of
// a goroutine. Once it is left, it is never used again.
type place struct {
	id    string
	left  chan struct{} // closed when it is
	doubt atomic.Uint32 // when a command that lines it up was given up, as token.since; 0 if none was
}

// waiter is one call's place in a line.
type waiter struct {
	cfg   *config
	lease *Lease // for the turn it may be given; made by its caller, whose context that asks

	// Protected by lines.mu.
	line       *line // nil once it has been given a lease
	next, prev *waiter
	contends   bool

	up chan wakeup // of size one, for those who are not the contender from the start
}

// wakeup is what a waiter is called up with.
type wakeup struct {
	lease *Lease        // its turn of the tenure that this process has; nil: it is the contender now
	old   *tenure       // whose turns are over, for the contender to yield; or nil
	held  bool          // this process had the name until now
	pause time.Duration // before it asks
}

func newLines() *lines {
	return &lines{byKey: make(map[string]*line), beside: make(map[string]int)}
}

// join puts w into the line for name, and says whether it is the contender at once.
func (s *lines) join(name string, w *waiter) (contender bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.open(w.cfg.line(name))
	l.push(w)
	w.contends = l.head == w && l.tenure == nil
	if !w.contends {
		w.up = make(chan wakeup, 1)
	}
	return w.contends
}

// joinAlone makes w the contender if nobody of this process stands in the line or holds the
// name. While a tenure that is no longer trusted keeps those in line from asking, the name is
// held still. Otherwise the answer is what this process knows already, or what comes out of watch
// once the attempt under way is over: the zero seen if that was broken off.
func (s *lines) joinAlone(name string, w *waiter) (joined bool, known seen, watch <-chan seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.open(w.cfg.line(name))
	if held := l.heldHere(); held != nil && (held.Remaining > 0 || l.head != nil && !l.head.contends) {
		return false, seen{at: time.Now(), held: held}, nil
	}
	if l.head == nil {
		l.push(w)
		w.contends = true
		return true, seen{}, nil
	}
	if known := l.hear().last; !l.trying && known.concerns(w.cfg) {
		return false, known, nil
	}
	return false, seen{}, l.outcome()
}

// joinNone makes w the contender of a line of its own.
func (s *lines) joinNone(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	new(line).push(w)
	w.contends = true
}

// wanted says whether somebody stands in a line.
func (s *lines) wanted(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byKey[key]
	return l != nil && l.head != nil
}

func (s *lines) open(key string) *line {
	l := s.byKey[key]
	if l == nil {
		l = &line{key: key}
		s.byKey[key] = l
	}
	return l
}

func (l *line) push(w *waiter) {
	w.line, w.prev = l, l.tail
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
}

// contends says whether w is the contender of this line. The contender of a line of its own,
// as joinNone makes one, is none of the line of the name that it wants.
func (l *line) contends(w *waiter) bool { return w.line == l && w.contends }

func (l *line) unlink(w *waiter) {
	if w.line != l {
		panic("core: a waiter is taken out of a line in which it does not stand")
	}
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
	w.line, w.next, w.prev, w.contends = nil, nil, nil, false
}

// heldHere says who of this process has the name. Nothing remains of a tenure that is no
// longer trusted but not over either.
func (l *line) heldHere() *driver.Held {
	if l.tenure == nil {
		return nil
	}
	return &driver.Held{Label: l.tenure.cfg.label, Remaining: l.tenure.left()}
}

// try says that the contender asks the backend now, and gives its claim what depends on the
// line: the place, and fences for those behind. While a degraded lease has the name it must
// not ask: the result says so.
func (s *lines) try(w *waiter, c *driver.Claim) *driver.Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.local(w, c.Name); held != nil {
		return held
	}
	l := w.line
	l.trying = true
	if l.place != nil {
		c.Place = l.place.id
	}
	if w.next != nil {
		c.Fences = driver.MaxTurns
	}
	return nil
}

// lineUp is this process's place in the backend's line, which it is about to go to.
func (s *lines) lineUp(w *waiter) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := w.line
	if l.place == nil {
		l.place = &place{id: newSecret(), left: make(chan struct{})}
	}
	return l.place
}

// refused tells the line what the contender got.
func (s *lines) refused(w *waiter, v seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.line.trying = false
	w.line.freed = w.line.freed && v.empty()
	w.line.hear().last = v
	w.line.news.publish(v)
}

// granted gives the line the tenure that the contender got, who leaves it. If a degraded lease
// has taken the name meanwhile, the tenure is of no use: the result says so.
func (s *lines) granted(w *waiter, t *tenure) *driver.Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.local(w, t.token.name); held != nil {
		return held
	}
	l := w.line
	l.unlink(w)
	l.trying, l.freed = false, false
	heard := l.news
	l.news = nil
	if l.place != nil { // a grant leaves the backend's line
		close(l.place.left)
		l.place = nil
	}
	if t.beside = l.key == "" || t.cfg.together(); t.beside {
		s.beside[t.token.name]++
	}
	if t.cfg.together() { // that says nothing about the next one
		heard.publish(seen{})
		l.callUp(wakeup{})
		s.prune(l)
		return nil
	}
	l.tenure, t.line = t, l
	if heard != nil {
		now := time.Now()
		heard.publish(seen{at: now, answered: now, held: l.heldHere()})
	}
	return nil
}

// leave takes w, whose caller gives up, out of its line; the next one becomes the contender, after
// a pause if w quits: see succession.
// What w was called up with and has not heard is its caller's to pass on, and so is the
// place in the backend's line if nobody is left who needs it.
func (s *lines) leave(w *waiter, quits bool) (unheard wakeup, empty *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case unheard = <-w.up:
	default:
	}
	l := w.line
	if l == nil {
		return unheard, nil
	}
	contended := w.contends
	l.unlink(w)
	if contended {
		if l.trying || l.head == nil { // it was cut off: whoever watched tries itself
			l.trying = false
			l.news.publish(seen{})
		}
		next := wakeup{held: l.freed}
		if quits {
			next.pause = l.succession(time.Now())
		}
		l.callUp(next)
	}
	if l.head == nil && l.place != nil {
		empty, l.place = l.place, nil
		close(empty.left)
	}
	s.prune(l)
	return unheard, empty
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
func (l *line) succession(now time.Time) time.Duration {
	switch since := now.Sub(l.askAt); {
	case since < 0:
		return -since
	case since > 2*lastGap:
		l.gap = firstGap
	default:
		l.gap = min(2*l.gap, lastGap)
	}
	l.askAt = now.Add(l.gap)
	return l.gap
}

// callUp makes the head the contender, unless this process has the name, or it is that
// already.
func (l *line) callUp(c wakeup) {
	if w := l.head; w != nil && !w.contends && (l.tenure == nil || c.old != nil) {
		w.contends = true
		w.up <- c // it is called up only once
	}
}

// vacate says that t no longer has its name.
func (s *lines) vacate(t *tenure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := t.line
	if t.beside {
		s.dismiss(t)
	}
	if l == nil || l.tenure != t {
		return
	}
	l.tenure, l.freed = nil, true
	l.callUp(wakeup{held: true})
	s.prune(l)
}

func (s *lines) prune(l *line) {
	if l.head == nil && l.tenure == nil {
		delete(s.byKey, l.key)
	}
}
