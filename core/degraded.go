package core

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// A degraded lease is a tenure that the backend does not know of. It is in this process's table of
// holders like any other tenure; there is no second table. These interleavings are behind the order
// of things:
//
//  1. A lease of this process from before the outage still has the name. Its tenure stays in the
//     table until it is released or lost. So nobody is a contender, and nobody goes local.
//  2. The backend comes back while a degraded lease stands. Callers that want the name wait in its
//     queue. A caller that was already the contender finds the degraded tenure before it asks
//     (try).
//  3. An acquire that fails closed has its command under way while another one goes local. If the
//     command is granted, the grant finds the degraded tenure in the table (granted) and is given
//     back. Both look under the same mutex.
//  4. Readers, and holders of a semaphore, have queues of their own. holders.beside counts their
//     tenures, so that nobody goes local beside them. As in 2 and 3, they find a degraded tenure
//     too.
//  5. The acquire that goes local has sent commands that may still be executed. Its token is given
//     up as always: what it is granted later is released, at the backend only.
//  6. The caller that goes local was the last one of this process in the backend's queue. The place
//     is left with the token.
//  7. The attempt was cut short by the caller's deadline, or by the end of its budget. That is no
//     outage, so it fails closed.
//  8. A call with a hand-off asks in a queue of its own, as its contender. That says nothing about
//     the queue of the name. If a lease of this process has the name, the call does not go local beside
//     it, and the callers that wait for it stay in the queue (contends, grantedHere).
//  9. MaxHold has ended the trust in a lease of this process, and its work has not returned. A
//     TryAcquire may ask the backend then, as its contender. But it does not go local beside that
//     work (working).

// noAnswer says, of the error of an acquire, that nobody gets an answer from the backend.
func noAnswer(err error) bool {
	return errors.Is(err, ErrUnavailable) && (errors.Is(err, errNoAnswer) || driver.CannotAnswer(err))
}

// judge is the error of an attempt that was neither granted nor refused. Silence counts as an
// outage only if there was enough time for an answer.
func (a *acquisition) judge(err error, took time.Duration) error {
	slow, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	err = opaque(err)
	if silence := errors.Is(err, errNoAnswer) || ok && slow.Timeout(); silence && took < min(a.cfg.attemptTimeout(), quickPatience) {
		err = errTooShort
	}
	failed := &unavailableError{"acquire", a.name, err}
	if noAnswer(failed) && !a.tooLate() {
		a.engine.outage.failed(a.engine.clock.Read(), err)
	}
	return failed
}

// silent says that this call goes on without the backend because of err. err is the result of its
// own attempt, or of one that it has waited for.
func (a *acquisition) silent(err error) bool { return a.mayGoLocal() && noAnswer(err) && !a.tooLate() }

// mayGoLocal is false once this call was told that the name is held, and for a TTL after others in
// the queue were told so: the holder may be at work.
func (a *acquisition) mayGoLocal() bool {
	return a.cfg.unavailable == LocalOnly && !a.refused &&
		(a.seen.heldAt == 0 || a.engine.clock.Now().Sub(a.seen.heldAt) >= a.cfg.ttl)
}

// outage is why the call need not ask the backend. It is nil if the call has to ask.
func (a *acquisition) outage() error {
	if !a.mayGoLocal() {
		return nil
	}
	probe, because := a.engine.outage.stands(a.engine.clock.Read())
	if probe {
		a.engine.probe(a.name, a.cfg.attemptTimeout())
	}
	if because == nil {
		return nil
	}
	return &unavailableError{"acquire", a.name, because}
}

// suspect is for a call whose caller has left before there was an answer. If all callers leave
// before their attempts are over, nobody else finds out about an outage.
func (a *acquisition) suspect() {
	if a.mayGoLocal() && a.engine.outage.suspect(a.engine.clock.Read()) {
		a.engine.probe(a.name, a.cfg.attemptTimeout())
	}
}

// degrade gives the contender a degraded lease. No lease and no error means to go on: other leases
// of this process have the name.
func (c *contender) degrade(because error) (*Lease, error) {
	x, held, err := c.goLocal(c.waiter, because)
	if held != nil {
		c.heldHere(held)
		c.backoff.unanswered()
	}
	return x, err
}

// heldHere: the contender has found that a lease of this process has the name. It polls, because
// nobody tells it when that lease is over.
func (c *contender) heldHere(held *driver.Held) {
	v := seen{held: held, at: time.Now(), answered: c.seen.answered}
	c.seen.err = nil
	c.seen.merge(v)
	c.engine.names.refused(c.waiter, v)
}

// overtake gives a degraded lease to a call that is not in the queue. The callers in the queue wait
// for the backend.
func (a *acquisition) overtake(because error) (*Lease, error) {
	a.token, a.offered = nil, offer{} // they were given up
	x, held, err := a.goLocal(&waiter{cfg: a.cfg}, because)
	if held != nil {
		a.seen.merge(seen{held: held, at: time.Now()})
		return nil, a.heldError()
	}
	return x, err
}

// goLocal makes a degraded lease, unless a lease of this process has the name.
func (a *acquisition) goLocal(w *waiter, because error) (x *Lease, held *driver.Held, err error) {
	now := a.engine.clock.Read()
	t := a.localTenure(now)
	if x = w.lease; x == nil {
		x = newLease(a.ctx, a.cfg, a.name)
	}
	x.bind(t, 0, now) // before others can see t
	t.first, t.leases = x, x
	held, empty := a.engine.names.grantedHere(w, t)
	if held != nil {
		return nil, held, nil
	}
	if a.token == nil && empty != nil {
		a.token = newToken(a.engine, a.name, a.cfg)
	}
	if a.token != nil {
		a.token.giveUp(a.ctx, empty, a.offered)
	}
	a.token, a.offered, a.seen.err = nil, offer{}, because // for observers
	if !a.engine.watchdog.add(t) {
		a.giveBack(x)
		return nil, nil, ErrClosed
	}
	if a.ctx.Err() != nil {
		a.giveBack(x)
		return nil, nil, a.ended()
	}
	return x, nil, nil
}

// localTenure makes a tenure with a token that is never sent.
func (a *acquisition) localTenure(now clock.Reading) *tenure {
	t := &tenure{
		engine: a.engine, token: &token{engine: a.engine, cfg: a.cfg, name: a.name, phase: tokenOwned}, cfg: a.cfg,
		local: true, asked: now, life: maxDuration, renewAt: clock.Never, holdEnd: clock.Never, index: -1,
	}
	if a.cfg.noRenewal {
		t.life = trust(a.cfg.ttl)
	}
	if a.cfg.maxHold > 0 {
		t.holdEnd = now.Awake().Add(a.cfg.maxHold)
	}
	return t
}
