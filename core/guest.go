package core

import (
	"slices"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/contend"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

// What a call is asked and told while it waits for a hold.

// Gone implements contend.Guest.
func (a *acquisition) Gone() error {
	r := a.engine
	switch {
	case r.life.Err() != nil:
		return ErrClosed
	case r.accept.Err() != nil && !a.begun():
		return ErrDraining
	default:
		return a.ctx.Err()
	}
}

// Until implements contend.Guest: once the Locker drains, the end of the lease whose work the call belongs to.
func (a *acquisition) Until() <-chan struct{} {
	if a.engine.accept.Err() == nil {
		return nil
	}
	return a.working().Context().Done()
}

// Heard implements contend.Guest.
func (a *acquisition) Heard(reply call.Reply) {
	m := reply.Meaning()
	switch {
	case m.Kind == driver.Done:
		a.tellLimit(reply.Grant.Limit)
	case m.Kind == driver.HeldBy:
		a.said = reply.Now.Awake()
		a.learn(contend.News{Held: m.Held, At: a.said})
	case silent(reply.Err) && a.ctx.Err() != nil: // it was cut short, which says nothing about the lock service
	default:
		a.known = a.unavailable(reply.Err)
	}
}

// learn takes note of what the line knows.
func (a *acquisition) learn(n contend.News) {
	if n.Held == nil {
		a.known = a.unavailable(n.Err)
		return
	}
	a.held, a.heldAt = n.Held, n.At
	a.tellLimit(n.Held.Limit)
}

func (a *acquisition) unavailable(err error) error {
	return &unavailableError{"acquire", a.name, opaque(err)}
}

// Look implements contend.Guest. It takes note of what this process knows of the name.
func (a *acquisition) Look() (known bool) {
	now, v := a.engine.clock.Read(), a.engine.room.Table.Watch(contend.Key(&a.lease.want))
	if h := v.Has; h != nil && h.Want() != &a.lease.want { // it is not given to this very call, which leaves
		if turn := h.Term(); v.Held || now.Up().Sub(turn.Begun()) <= now.Awake().Sub(a.began) { // or had it while the call waited
			a.here = h
		}
	}
	switch {
	case v.Known: // said since then
		a.learn(v.News)
		if v.News.Held != nil {
			a.said = v.News.At
		}
	case a.here != nil:
		a.held, a.heldAt = a.here.Held(now.Awake()), now.Awake()
	}
	return a.held != nil || a.known != nil
}

// Waits implements contend.Guest.
func (a *acquisition) Waits(here *hold.Hold) {
	a.beginWait()
	a.here = here
}

// beginWait tells observers, once, that the call has found the name held and waits.
func (a *acquisition) beginWait() {
	if a.waited {
		return
	}
	a.waited = true
	if a.engine.observes(EventWaiting) {
		a.engine.tell(a.cfg.event(a.ctx, EventWaiting, a.name))
	}
}

// tellLimit tells observers, once, that n counts instead of the caller's limit.
func (a *acquisition) tellLimit(n int) {
	if n > 0 && !a.limited && a.engine.observes(EventLimited) {
		a.limited = true
		e := a.cfg.event(a.ctx, EventLimited, a.name)
		e.Asked, e.Counts = a.cfg.Limit, n
		a.engine.tell(e)
	}
}

// longWait is for how many TTLs a call waits before observers are told, once. It may be one of several calls, here or in
// other processes, that wait for one another, or a part of the work that it waits for. Nobody can know that, so nothing changes for the call.
const longWait = 3

// longAt is when observers are told, if there are any.
func (a *acquisition) longAt() clock.Awake {
	if a.long || a.cfg.campaigns {
		return clock.Never
	}
	return a.began.Add(longWait * a.cfg.TTL)
}

// Long implements contend.Guest: observers are told, once.
func (a *acquisition) Long() {
	a.long = true
	e := a.cfg.event(a.ctx, EventLongWait, a.name)
	e.Took = a.waitedFor()
	if a.held != nil {
		e.Holder = a.held.Label
	}
	for x := leaseOf(a.ctx); x != nil; x = x.outer() {
		if x.live() && !slices.Contains(e.Holds, x.want.Name) {
			e.Holds, e.HoldsOf = append(e.Holds, x.want.Name), append(e.HoldsOf, x.cfg.template)
		}
	}
	slices.Reverse(e.Holds)
	slices.Reverse(e.HoldsOf)
	a.engine.tell(e)
}
