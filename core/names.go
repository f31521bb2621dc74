package core

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// names is who of this process holds which name, and who waits for it. Both are looked at in one step: what
// a grant, a turn or a degraded lease does to one of them depends on the other.
type names struct {
	mu      sync.Mutex // protects the tables and everything in each queue
	holders holders
	queues  map[string]*queue // by config.queueKey
}

// holders are the tenures of this process, by name.
type holders struct {
	alone  map[string]*tenure // by which this process alone has the name, until their release is over
	beside map[string]int     // how many others leave the name to others, too, or came by a hand-off
}

// holding says where in holders a tenure is.
type holding uint8

const (
	holdsNothing holding = iota
	holdsAlone
	holdsBeside
)

func newNames() *names {
	return &names{queues: make(map[string]*queue), holders: holders{make(map[string]*tenure), make(map[string]int)}}
}

// occupy takes t in. One that is alone takes the place of the tenure that it was yielded from.
func (h *holders) occupy(t *tenure, as holding) {
	name := t.token.name
	if t.holds = as; as == holdsBeside {
		h.beside[name]++
		return
	}
	if old := h.alone[name]; old != nil {
		old.holds = holdsNothing
	}
	h.alone[name] = t
}

// vacate takes t out, and says what it was.
func (h *holders) vacate(t *tenure) (was holding) {
	name := t.token.name
	switch was = t.holds; was {
	case holdsAlone:
		delete(h.alone, name)
	case holdsBeside:
		if h.beside[name]--; h.beside[name] == 0 {
			delete(h.beside, name)
		}
	case holdsNothing:
	}
	t.holds = holdsNothing
	return was
}

// held says who of this process alone has the name. Nothing remains of a tenure that is no
// longer trusted but not over either. A key that is no name has no holder.
func (h *holders) held(name string) *driver.Held {
	if t := h.alone[name]; t != nil {
		return &driver.Held{Label: t.cfg.label, Remaining: t.left()}
	}
	return nil
}

// degraded is held for a degraded lease.
func (h *holders) degraded(name string) *driver.Held {
	if t := h.alone[name]; t != nil && t.local {
		return h.held(name)
	}
	return nil
}

// join puts w into the queue for name, and says whether it is the contender at once.
func (s *names) join(name string, w *waiter) (contender bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.open(w.cfg.queueKey(name))
	q.push(w)
	w.contends = q.head == w && s.holders.alone[q.key] == nil
	if !w.contends {
		w.woken = make(chan wakeup, 1)
	}
	return w.contends
}

// joinAlone makes w the contender if nobody of this process waits for the name or holds
// it. While a tenure that is no longer trusted keeps those who wait from asking, the name is
// held still. Otherwise the answer is what this process knows already, or what comes out of watch
// once the attempt under way is over: nothing if that was broken off.
func (s *names) joinAlone(name string, w *waiter) (joined bool, known seen, watch <-chan seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := w.cfg.queueKey(name)
	q := s.queues[key]
	if held := s.holders.held(key); held != nil && (held.Remaining > 0 || q != nil && !q.head.contends) {
		return false, seen{at: time.Now(), held: held}, nil
	}
	if q == nil {
		s.open(key).push(w)
		w.contends = true
		return true, seen{}, nil
	}
	if known := q.hear().last; !q.trying && known.concerns(w.cfg) {
		return false, known, nil
	}
	return false, seen{}, q.watch()
}

// joinNone makes w the contender of a queue of its own.
func (s *names) joinNone(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	new(queue).push(w)
	w.contends = true
}

// wanted says whether somebody waits in a queue.
func (s *names) wanted(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[key] != nil
}

func (s *names) open(key string) *queue {
	q := s.queues[key]
	if q == nil {
		q = &queue{key: key}
		s.queues[key] = q
	}
	return q
}

// try says that the contender asks the backend now, and gives its claim what depends on the
// queue: the place, and fences for those behind. While a degraded lease has the name it must
// not ask: the result says so.
func (s *names) try(w *waiter, c *driver.Claim) *driver.Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.holders.degraded(c.Name); held != nil {
		return held
	}
	q := w.queue
	q.trying = true
	if q.place != nil {
		c.Place = q.place.id
	}
	if w.next != nil {
		c.Fences = driver.MaxTurns
	}
	return nil
}

// lineUp is this process's place in the backend's queue, which it is about to go to.
func (s *names) lineUp(w *waiter) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := w.queue
	if q.place == nil {
		q.place = &place{id: newSecret(), left: make(chan struct{})}
	}
	return q.place
}

// refused tells the queue what the contender got.
func (s *names) refused(w *waiter, v seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := w.queue
	q.trying = false
	q.freed = q.freed && v.empty()
	q.hear().last = v
	q.heard.publish(v)
}

// granted makes the tenure that the contender got a holder, and takes the contender out of its queue. If a
// degraded lease has taken the name meanwhile, the tenure is of no use: the result says so.
func (s *names) granted(w *waiter, t *tenure) *driver.Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.holders.degraded(t.token.name); held != nil {
		return held
	}
	q := w.queue
	q.unlink(w)
	q.trying, q.freed = false, false
	heard := q.heard
	q.heard = nil
	if q.place != nil { // a grant leaves the backend's queue
		close(q.place.left)
		q.place = nil
	}
	switch {
	case t.cfg.together(): // that says nothing about the next one
		s.holders.occupy(t, holdsBeside)
		heard.publish(seen{})
		q.wake(wakeup{})
	case q.key == "": // those who wait for the name do not know of it
		s.holders.occupy(t, holdsBeside)
	default:
		s.holders.occupy(t, holdsAlone)
		if heard != nil {
			now := time.Now()
			heard.publish(seen{at: now, answered: now, held: s.holders.held(q.key)})
		}
	}
	s.prune(q)
	return nil
}

// grantedHere makes a degraded tenure the holder of its name, unless a lease of this process has
// that, and takes w out of wherever it waits. The place in the backend's queue is the caller's to leave
// if nobody else needs it.
func (s *names) grantedHere(w *waiter, t *tenure) (held *driver.Held, empty *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := t.token.name
	if s.holders.beside[name] > 0 {
		return &driver.Held{}, nil
	}
	q := s.queues[name]
	if has := s.holders.alone[name]; has != nil && (has.local || q == nil || !q.contends(w)) { // else it is one that w was woken to yield
		return s.holders.held(name), nil
	}
	s.holders.occupy(t, holdsAlone)
	if w.queue != nil && w.queue != q { // a queue of its own, that ends with it
		w.queue.unlink(w)
	}
	if q == nil {
		return nil, nil
	}
	if w.queue == q {
		q.unlink(w)
		q.trying = false
		heard := q.heard
		q.heard = nil
		heard.publish(seen{at: time.Now(), held: s.holders.held(name)})
	}
	empty = q.leaveBackend()
	s.prune(q)
	return nil, empty
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

// leave takes w, whose caller gives up, out of its queue; the next one becomes the contender, after
// a pause if w quits: see queue.succession.
// What w was woken with and has not heard is its caller's to pass on, and so is the
// place in the backend's queue if nobody is left who needs it.
func (s *names) leave(w *waiter, quits bool) (unheard wakeup, empty *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case unheard = <-w.woken:
	default:
	}
	q := w.queue
	if q == nil {
		return unheard, nil
	}
	contended := w.contends
	q.unlink(w)
	if contended {
		if q.trying || q.head == nil { // it was cut off: whoever watched tries itself
			q.trying = false
			q.heard.publish(seen{})
		}
		next := wakeup{held: q.freed}
		if quits {
			next.pause = q.succession(time.Now())
		}
		s.wake(q, next)
	}
	empty = q.leaveBackend()
	s.prune(q)
	return unheard, empty
}

// wake makes the head of a queue the contender, unless this process has the name.
func (s *names) wake(q *queue, c wakeup) {
	if s.holders.alone[q.key] == nil {
		q.wake(c)
	}
}

// vacate says that t no longer has its name.
func (s *names) vacate(t *tenure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders.vacate(t) != holdsAlone {
		return
	}
	if q := s.queues[t.token.name]; q != nil {
		q.freed = true
		q.wake(wakeup{held: true})
	}
}

// prune forgets a queue in which nobody waits.
func (s *names) prune(q *queue) {
	if q.head == nil && s.queues[q.key] == q {
		delete(s.queues, q.key)
	}
}
