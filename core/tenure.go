package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// tenure is one grant by the backend, until its release. It has the Locker's own clocks and
// goroutines: no caller's context reaches its renewal.
//
// Mutexes are taken in the order names, tenure, watchdog, token.
type tenure struct {
	engine   *engine
	token    *token
	cfg      *config       // of the call that got it; later turns have asked for the same
	fence    uint64        // of the first turn
	life     time.Duration // how long a grant or renewal is trusted, from when it was asked for
	holds    holding       // protected by names.mu
	turns    int32         // how many turns it has fences for
	turn     int32         // the turn under way; protected by mu
	failed   atomic.Int32  // how many renewals in a row were not answered
	doubtful bool          // a command that may have granted it was not answered
	local    bool          // it is degraded: the backend knows nothing of it

	// Protected by watchdog.mu.
	kept  bool
	index int32 // in the watchdog's schedule; -1 if it is not there

	mu       sync.Mutex // protects the fields below
	state    tenureState
	unproven bool          // it was granted in line, and no renewal has been answered yet: no turns
	renewing bool          // a renewal is under way
	done     bool          // the work is finished: the release leaves the marker
	forgone  bool          // nobody has worked under it, so WithMinHold does not apply
	inFlight int32         // how many commands that carry the token are under way
	loss     *LostError    // the reason, once trust has ended
	asked    clock.Reading // when the last command was sent that the backend has answered with "yours"
	granted  clock.Reading // when the acquire was sent, or, of a grant in line, the renewal that proved it: turns count from then
	renewAt  clock.Awake   // when the next renewal is due
	holdEnd  clock.Awake   // when WithMaxHold ends it
	quiet    latch         // opened when inFlight becomes 0
	gone     bool          // it was lost, and has still to be taken out of the tables
	first    *Lease        // the lease whose turn it is, until the next turn
	leases   *Lease        // the leases that have not ended, linked by next: the first one and those that re-entered
	handed   *handed       // set by Detach, else nil: the release leaves the name for this hand-off
}

// shared says that the work has the name together with other readers, or lets them in.
func (t *tenure) shared() bool { return t.cfg.shared }

type tenureState uint8

const (
	tenureHeld     tenureState = iota // trusted and renewed
	tenureExpelled                    // MaxHold is over: not trusted, not renewed, still to be released
	tenureEnding                      // its release is under way
	tenureLost
	tenureReleased
)

// handed is what the release of a detached tenure leaves behind.
type handed struct {
	handoff string // its hash
	keep    time.Duration
}

func newTenure(b *token, c *config, g driver.Grant, ttl time.Duration, asked clock.Reading) *tenure {
	t := &tenure{
		engine: b.engine, token: b, cfg: c, fence: g.Fence, doubtful: b.doubtful(),
		turns: int32(min(g.Fences, driver.MaxTurns)), //nolint:gosec // G115: at most that, and no backend has less than none
		asked: asked, granted: asked, life: trust(ttl), renewAt: clock.Never, holdEnd: clock.Never, index: -1,
	}
	if period := c.period(); period > 0 {
		t.renewAt = asked.Awake().Add(b.engine.watchdog.jitter(asked, min(period, ttl/3*2), firstSpread))
	}
	b.to(tokenOwned)
	return t
}

// fenceOf is the fence of a turn. It is 0 if the backend mints none.
func (t *tenure) fenceOf(turn int32) uint64 {
	if t.fence == 0 {
		return 0
	}
	return t.fence + uint64(turn) //nolint:gosec // G115: a turn is not negative
}

// subject is that of the outermost lease, which stays first until its turn is over. The caller
// holds the mutex, or the last turn is over.
func (t *tenure) subject() Subject { return t.first.subject() }

// left says how long the tenure is still trusted; 0 if it is not.
func (t *tenure) left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leftAt(t.engine.clock.Read())
}

// leftAt is left at now. The caller holds the mutex.
func (t *tenure) leftAt(now clock.Reading) time.Duration {
	if t.state != tenureHeld {
		return 0
	}
	return max(0, t.life-now.Since(t.asked))
}

// working says that a lease of the tenure has not ended: its work may still run, if only because it
// has outlived WithMaxHold.
func (t *tenure) working() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leases != nil
}

// ttl is the TTL that the backend has granted. It is the inverse of trust.
func (t *tenure) ttl() time.Duration {
	d := t.life + minDrift
	return d + d/99
}

// rest is what is left, at now, of the time for which WithMinHold keeps the name taken. It counts
// from when the answer to the grant arrived, which is never before the grant was made. A tenure
// with WithMinHold has only one turn.
func (t *tenure) rest(now clock.Reading) time.Duration {
	if t.cfg.minHold == 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.forgone {
		return 0
	}
	left := t.cfg.minHold - (now.Up().Sub(t.first.since))
	return max(0, left+time.Millisecond-1).Truncate(time.Millisecond) // backends count in whole ones
}

// forgo is for a tenure that is given back before anybody has worked under it.
func (t *tenure) forgo() {
	t.mu.Lock()
	t.forgone = true
	t.mu.Unlock()
}

// validUntil is when trust ends unless it is renewed. The caller holds the mutex.
func (t *tenure) validUntil() clock.Awake { return t.asked.Awake().Add(t.life) }

// stands says whether the time of the tenure is not over yet. It is called while the tenure is
// being released. asked does not change any more then, so no mutex is needed.
func (t *tenure) stands() bool { return t.engine.clock.Read().Since(t.asked) < t.life }

// due is when the watchdog has to look at the tenure again. The caller holds the mutex, or nobody
// else knows the tenure yet.
func (t *tenure) due() (p alarm) {
	if t.state != tenureHeld && t.state != tenureExpelled {
		return alarm{at: clock.Never}
	}
	p.at = t.validUntil()
	if t.state == tenureHeld {
		p.at = min(p.at, t.holdEnd)
	}
	if t.renewable() && t.renewAt < p.at {
		p = alarm{t.renewAt, t.early()}
	}
	return p
}

// renewable says whether the watchdog may renew. The caller holds the mutex.
func (t *tenure) renewable() bool {
	return t.state == tenureHeld && t.renewAt != clock.Never && !t.renewing
}

// early is how long before it is due a renewal may go, to share a command with others.
func (t *tenure) early() time.Duration { return t.cfg.ttl / 30 }

// locked runs f under the mutex, after a check whether the time of the tenure is over at now. If
// that check or f loses the tenure, it is taken out of all tables after the mutex was unlocked,
// because the mutexes of the tables come first in the order.
func (t *tenure) locked(now clock.Reading, f func()) {
	t.mu.Lock()
	t.overdue(now)
	f()
	gone := t.gone
	t.gone = false
	t.mu.Unlock()
	if gone {
		t.vacate()
	}
}

// look is for the watchdog. It does what is due at now, and says whether to renew. From then on a
// renewal counts as under way.
func (t *tenure) look(now clock.Reading) (renew bool) {
	t.locked(now, func() {
		if t.state == tenureHeld && now.Awake() >= t.holdEnd {
			t.expel(now)
		}
		if t.renewable() && now.Awake() >= t.renewAt.Add(-t.early()) {
			renew = true
			t.renewing = true
			t.inFlight++
		}
		t.engine.watchdog.set(t)
	})
	return renew
}

// overdue loses the tenure if its time is over. The caller holds the mutex.
func (t *tenure) overdue(now clock.Reading) {
	switch {
	case now.Since(t.asked) < t.life:
	case t.failed.Load() > 0:
		t.lose(ReasonUnreachable, now)
	default:
		t.lose(ReasonExpired, now)
	}
}

// expel ends the contexts because MaxHold is over. The name stays taken until the work has returned
// or the TTL is over. The caller holds the mutex.
func (t *tenure) expel(now clock.Reading) {
	t.state = tenureExpelled
	t.cutOff(ReasonMaxHold, now)
}

// lose ends trust for good. It is called only inside locked, with the mutex held.
func (t *tenure) lose(reason Reason, now clock.Reading) {
	switch t.state {
	case tenureHeld:
		t.state, t.gone = tenureLost, true
		t.cutOff(reason, now)
	case tenureExpelled: // its work was told before
		t.state, t.gone = tenureLost, true
	default:
	}
}

// cutOff ends the contexts of all leases. It runs no user code: functions registered by
// context.AfterFunc run on goroutines of their own. The caller holds the mutex.
func (t *tenure) cutOff(reason Reason, now clock.Reading) {
	t.loss = &LostError{t.token.name, reason}
	for x := t.leases; x != nil; x = x.next {
		x.loss, x.until = t.loss, min(t.validUntil(), now.Awake())
	}
	t.endLeases(t.loss)
	if t.engine.events != nil {
		t.engine.events.add(t.engine, LostEvent{t.subject(), reason, now.Up().Sub(t.first.since)})
	}
}

// endLeases ends the contexts of all leases. The caller holds the mutex.
func (t *tenure) endLeases(cause error) {
	for x := t.leases; x != nil; x = x.next {
		x.endContexts(cause)
	}
}

// endContexts ends the contexts of all leases, and nothing else.
func (t *tenure) endContexts(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLeases(cause)
}

// remove takes x out of the tenure's leases, and says whether it was the last one. The caller holds
// the mutex.
func (t *tenure) remove(x *Lease) (last bool) {
	at := &t.leases
	for *at != nil && *at != x {
		at = &(*at).next
	}
	if *at == x {
		*at = x.next
	}
	return t.leases == nil
}

// vacate takes a tenure that is over out of the watchdog and out of names.
func (t *tenure) vacate() {
	kept := t.cfg.minHold > 0 && t.rest(t.engine.clock.Read()) > 0
	t.token.end(context.Background(), kept) // before Close can find that nothing is left
	t.engine.watchdog.remove(t)
	t.engine.names.vacate(t)
}

// landed says that a command that carried the token is over. The caller holds the mutex.
func (t *tenure) landed() {
	t.inFlight--
	if t.inFlight == 0 {
		t.quiet.open()
	}
}

// idle says that no command that carries the token is under way.
func (t *tenure) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inFlight == 0
}

// awaitIdle waits for the commands under way. Each of them has a time limit of its own.
func (t *tenure) awaitIdle() {
	t.mu.Lock()
	if t.inFlight == 0 {
		t.mu.Unlock()
		return
	}
	quiet := t.quiet.wait()
	t.mu.Unlock()
	<-quiet
}
