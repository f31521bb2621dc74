package core

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// names knows who of this process holds which name, and who waits for it. Both are looked at in one
// step, because what a grant, a turn or a degraded lease does to one of them depends on the other.
type names struct {
	mu      sync.Mutex // protects both tables, everything in each queue, and tenure.holds
	holders holders
	queues  map[string]*queue // by config.queueKey
}

func newNames() *names {
	return &names{queues: make(map[string]*queue), holders: holders{alone: make(map[string]*tenure), beside: make(map[string]int)}}
}

// here says whether a call of this process alone has the name, and since how long.
func (s *names) here(name string) (here bool, held time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.holders.alone[name]
	if t == nil {
		return false, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return true, t.engine.clock.Read().Up().Sub(t.first.since)
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

// joinAlone makes w the contender if nobody of this process waits for the name or holds it. The
// name also counts as held while a tenure that is no longer trusted keeps the waiters from asking.
// Otherwise the answer is what this process already knows. If it knows nothing, watch gives the
// outcome of the attempt under way once that is over, and nothing if the attempt was broken off.
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

// open returns the queue for key, and makes it if there is none. The caller holds the mutex.
func (s *names) open(key string) *queue {
	q := s.queues[key]
	if q == nil {
		q = &queue{key: key, listed: true}
		s.queues[key] = q
	}
	return q
}

// try says that the contender asks the backend now. It adds to its claim what depends on the queue:
// the place, and fences for the waiters behind. While a degraded lease has the name, the contender
// must not ask; then the result is that lease.
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

// lineUp returns this process's place in the backend's queue, which the contender is about to join.
func (s *names) lineUp(w *waiter) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.queue.lineUp()
}

// offer is lineUp for a contender that offers its claim. It adds what depends on the queue: the
// number of the offer, and fences for the waiters behind.
//
// With waiters behind, it makes no offer, unless its token was offered before. A tenure that came by an
// offer has turns only after its first renewal. Work that is over earlier would give the name back each
// time, where a claim brings a whole block of turns.
func (s *names) offer(w *waiter, c *driver.Claim, before bool) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := w.queue.lineUp()
	if w.next != nil && !before {
		return at
	}
	at.offers++
	c.Offer = at.offers
	if w.next != nil {
		c.Fences = driver.MaxTurns
	}
	return at
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

// granted makes the tenure that the contender got a holder, and takes the contender out of its
// queue. If a degraded lease has taken the name meanwhile, the tenure is of no use; then the result
// is that lease.
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
	if q.place != nil { // a grant takes the place out of the backend's queue
		close(q.place.left)
		q.place = nil
	}
	switch {
	case t.cfg.together(): // this grant says nothing about the next caller's
		s.holders.occupy(t, holdsBeside)
		heard.publish(seen{})
		q.wake(wakeup{})
	case q.key == "": // the callers that wait for the name do not know of it
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

// grantedHere makes a degraded tenure the holder of its name, unless another lease of this process
// has the name. It takes w out of its queue. If nobody else needs the place in the backend's queue,
// it is returned, and the caller has to leave it.
func (s *names) grantedHere(w *waiter, t *tenure) (held *driver.Held, empty *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := t.token.name
	if s.holders.beside[name] > 0 {
		return &driver.Held{}, nil
	}
	q := s.queues[name]
	// Otherwise it is a tenure whose release has no answer yet.
	if has := s.holders.alone[name]; has != nil && (has.local || q == nil || !q.contends(w) || has.working()) {
		return s.holders.held(name), nil
	}
	s.holders.occupy(t, holdsAlone)
	if w.queue != nil && w.queue != q { // a queue of its own, which ends with w
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

// watch returns a channel that gets the outcome of the contender's attempt: at once, if there is one
// by now. Otherwise an outcome that has come since the caller last looked would be missed, and the
// next one may be far. The channel is nil if w already has a lease.
func (s *names) watch(w *waiter) <-chan seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := w.queue
	if q == nil { // its lease is in w.woken
		return nil
	}
	if v := s.knows(q); v.held != nil || v.err != nil {
		outcome := make(chan seen, 1)
		outcome <- v
		return outcome
	}
	return q.watch()
}

// known returns what w's queue knows.
func (s *names) known(w *waiter) (v seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.queue == nil {
		return v
	}
	return s.knows(w.queue)
}

// knows returns what q knows. The caller holds the mutex.
func (s *names) knows(q *queue) (v seen) {
	if q.heard != nil {
		v = q.heard.last
	}
	if held := s.holders.held(q.key); held != nil {
		v.at, v.held = time.Now(), held
	}
	return v
}

// leave takes w, whose caller gives up, out of its queue. The next waiter becomes the contender,
// after a pause if w quits: see queue.succession. The caller has to pass on a wakeup that w was
// sent and has not heard. It also has to leave the place in the backend's queue, if nobody needs it
// any more.
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
	if contended && q.trying || q.head == nil { // no attempt is under way any more: callers that watch for its outcome ask themselves
		q.trying = false
		q.heard.publish(seen{})
	}
	if contended {
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

// wake makes the head of a queue the contender, unless this process has the name. The caller holds
// the mutex.
func (s *names) wake(q *queue, c wakeup) {
	if s.holders.alone[q.key] == nil {
		q.wake(c)
	}
}

// vacate says that t no longer has its name. If t had it alone, the first waiter asks now.
func (s *names) vacate(t *tenure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders.vacate(t) != holdsAlone {
		return
	}
	if q := s.queues[t.token.name]; q != nil {
		q.freed = true
		q.wake(wakeup{held: true, queue: t.besideOthers()})
	}
}

// prune forgets a queue in which nobody waits. The caller holds the mutex.
func (s *names) prune(q *queue) {
	if q.head == nil && q.listed {
		q.listed = false
		delete(s.queues, q.key)
	}
}
