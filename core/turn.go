package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// maxTurns is the time after the grant in which a tenure goes from one goroutine
// of this process to the next without asking again. When that time is over, or the fences that were
// reserved with the tenure are used up, other processes have their chance.
const maxTurns = 5 * time.Millisecond

// pass ends the turn of x and gives the tenure to the first waiter of the queue, if that waiter
// wants the same. It says whether it did. That costs no round trip. It is done only if nothing
// about the tenure is in doubt: it is trusted for at least a third of its TTL, nothing is under
// way, and its last command was answered.
//
// A renewal begins no new turns. All turns of a tenure have one handle, by which an operator takes the name from
// it, so they must be over soon after the grant:
//
//  1. an operator sees that the holder has the name for minutes, and its handle;
//  2. a renewal is answered, the work ends within 5 ms of that, and the next goroutine would have the next turn;
//  3. the operator takes the name from the handle, and hits the new turn.
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
	if x.ended || !t.sound(x, now) || !t.turnsLeft(now) || !t.cfg.alike(w.cfg) || t.engine.closed() {
		return false
	}
	x.endTurn()
	x.tellReleased(now)
	q.unlink(w)
	t.next(w, x.turn+1, now)
	w.woken <- wakeup{lease: w.lease} // never blocks: it is woken only once
	s.prune(q)
	return true
}

// turnsLeft says whether the tenure has another turn. The caller holds the mutex.
func (t *tenure) turnsLeft(now clock.Reading) bool {
	return t.turn+1 < t.turns && now.Since(t.granted) < maxTurns
}

// besideOthers says that the tenure has a block of fences, and only as many as a backend reserves while others
// wait there.
func (t *tenure) besideOthers() bool { return 1 < t.turns && t.turns <= driver.TurnsBesideOthers }

// sound says that x alone has the tenure, and that nothing about the tenure is in doubt. A degraded
// tenure is not passed on: the next caller asks the backend, or knows that it cannot answer. The
// caller holds the mutex.
func (t *tenure) sound(x *Lease, now clock.Reading) bool {
	return !t.local && t.state == tenureHeld && !t.done && !t.doubtful && !t.unproven && t.inFlight == 0 && t.failed.Load() == 0 &&
		t.leases == x && x.next == nil && t.life-now.Since(t.asked) >= t.life/3
}

// proven waits for the first renewal of a tenure that was granted in line, for as long as turns
// last and ctx stands. It says whether there was one to wait for.
func (t *tenure) proven(ctx context.Context) bool {
	t.mu.Lock()
	if !t.unproven || t.inFlight == 0 {
		t.mu.Unlock()
		return false
	}
	quiet := t.quiet.wait()
	t.mu.Unlock()
	timer := time.NewTimer(maxTurns)
	defer timer.Stop()
	select {
	case <-quiet:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// endTurn ends x while its tenure goes on. The caller holds the tenure's mutex.
func (x *Lease) endTurn() {
	x.ended = true
	if x.loss == nil {
		x.until = x.tenure.validUntil()
	}
	x.endContexts(context.Canceled)
	x.setResult(nil)
}

func (x *Lease) tellReleased(now clock.Reading) {
	if events := x.tenure.engine.events; events != nil {
		events.add(x.tenure.engine, ReleasedEvent{Subject: x.subject(), Held: now.Up().Sub(x.since)})
	}
}

// next gives w the next turn. The caller holds the mutex, and that of names.
func (t *tenure) next(w *waiter, turn int32, now clock.Reading) {
	w.lease.bind(t, turn, now)
	t.first, t.leases, t.turn = w.lease, w.lease, turn
	t.holdEnd = clock.Never
	if w.cfg.maxHold > 0 {
		t.holdEnd = now.Awake().Add(w.cfg.maxHold)
		t.engine.watchdog.set(t)
	}
}
