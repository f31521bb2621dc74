package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// maxTurns is how long after the backend was last asked a tenure goes from one goroutine of
// this process to the next without asking it again. By then, or once the fences that were
// reserved with it are used up, other processes have their chance.
const maxTurns = 5 * time.Millisecond

// pass ends the turn of x and gives the tenure to the first in line, who wants the same, and
// says whether it did. That costs no round trip, as long as nothing about the tenure is in
// doubt: it is trusted for a third of its TTL at least, nothing is under way, and its last
// command was answered.
//
// Nor is it passed on once a renewal has told the lock service the fence of a turn, for whom Inspect
// and ForceRelease show and match that one:
//
//  1. a renewal carries the fence 7 of the turn under way, and is answered: t.asked is now;
//  2. within 5 ms the turn ends, and the next one has the fence 8, without a command;
//  3. an operator, who has seen the holder of 7, takes the name from 7, and hits 8.
//
// A renewal that nobody waits for any more may be executed later still. It carries the fence of the
// last turn that there is, or a token that owns nothing any more.
//
// If only its turns are over, the first in line is called up to yield: to let those who
// stand in line at the backend go first, or to go on, in one step.
func (s *names) pass(x *Lease, done bool) bool {
	t := x.tenure
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[t.token.name]
	if t.holds != holdsAlone || q == nil || q.head.contends || done || x.inside != nil {
		return false
	}
	w := q.head
	now := t.engine.clock.Read()
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.ended || !t.sound(x, now) || !t.cfg.alike(w.cfg) || t.engine.closed() {
		return false
	}
	switch {
	case t.turnsLeft(now):
		x.endTurn()
		x.tellReleased(now)
		q.unlink(w)
		t.next(w, x.turn+1, now)
		w.woken <- wakeup{lease: w.lease} // it is woken only once
		s.prune(q)
	case t.engine.yielder != nil:
		x.endTurn()
		t.leases = nil
		t.state = tenureEnding
		q.freed = true
		q.wake(wakeup{old: t})
	default:
		return false
	}
	return true
}

// turnsLeft says whether the tenure has another turn. The caller holds the mutex.
func (t *tenure) turnsLeft(now clock.Reading) bool {
	return t.turn+1 < t.turns && !t.shown && now.Since(t.asked) < maxTurns
}

// sound says that x, alone, has the tenure, and that nothing about it is in doubt. A degraded
// one is not handed on: whoever is next asks the backend, or knows that it cannot answer.
func (t *tenure) sound(x *Lease, now clock.Reading) bool {
	return !t.local && t.state == tenureHeld && !t.done && !t.doubtful && t.inFlight == 0 && t.failed.Load() == 0 &&
		t.leases == x && x.next == nil && t.life-now.Since(t.asked) >= t.life/3
}

// endTurn ends x while its tenure goes on.
func (x *Lease) endTurn() {
	x.ended = true
	x.until = x.tenure.validUntil()
	x.endContexts(context.Canceled)
	x.setResult(nil)
}

func (x *Lease) tellReleased(now clock.Reading) {
	if events := x.tenure.engine.events; events != nil {
		events.add(x.tenure.engine, ReleasedEvent{Subject: x.subject(), Held: now.Up().Sub(x.since)})
	}
}

// next gives w the next turn.
func (t *tenure) next(w *waiter, turn int32, now clock.Reading) {
	w.lease.bind(t, turn, now)
	t.first, t.leases, t.turn = w.lease, w.lease, turn
	t.holdEnd = clock.Never
	if w.cfg.maxHold > 0 {
		t.holdEnd = now.Awake().Add(w.cfg.maxHold)
		t.engine.watchdog.set(t)
	}
}
