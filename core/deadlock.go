package core

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// deadlocks finds circles of calls of this process that wait for one another. docs/design.md has the
// rules: what counts as waiting, and why no call gets the error that could have gone on.
//
// Only a call that waits under the context of a lease is in it: others hold nothing that anybody
// could wait for. So locks that are not nested cost nothing here.
type deadlocks struct {
	mu   sync.Mutex                    // protects the field below, and blocked.doomed; taken before that of a tenure
	held map[string]map[*hold]struct{} // calls that wait, by the names that they hold meanwhile
}

// blocked is a call that waits while it holds something.
type blocked struct {
	name   string
	cfg    *config
	slot   *Lease // the lease inside of which it waits for its siblings; nil if it waits for the name
	holds  []*hold
	caller context.Context
	ctx    context.Context // of its wait; made by the standard library
	cancel context.CancelCauseFunc
	ends   time.Time // when it gives up by itself; zero if it does not
	doomed bool      // it was told already
}

// hold is one lease that a blocked call stands under.
type hold struct {
	call  *blocked
	lease *Lease
}

// leasesOf returns the leases of r that ctx stands under. A context that never ends was cut off from
// its leases, by context.WithoutCancel: what runs under it does not keep them from ending.
func (r *engine) leasesOf(ctx context.Context) (leases []*Lease) {
	if ctx.Done() == nil {
		return nil
	}
	x := leaseOf(ctx)
	for ; x != nil; x = x.outer {
		if x.tenure.engine == r {
			leases = append(leases, x)
		}
	}
	return leases
}

// block takes note that the call begins to wait: for its name, or for the slot of a lease that it
// re-enters. If it stands under a lease, it gets a context that ends with a *[DeadlockError] if it is told
// of a circle, and it may be told at once.
func (a *acquisition) block(slot *Lease) {
	if a.blocked != nil {
		return
	}
	leases := a.engine.leasesOf(a.ctx)
	if leases == nil {
		return
	}
	b := &blocked{name: a.name, cfg: a.cfg, slot: slot, caller: a.ctx, ends: a.ends(leases)}
	b.ctx, b.cancel = context.WithCancelCause(a.ctx)
	for _, x := range leases {
		b.holds = append(b.holds, &hold{b, x})
	}
	a.setContext(b.ctx)
	a.blocked = b
	for victim, err := range a.engine.deadlocks.enter(b, a.engine.clock.Read()) {
		if victim == b {
			b.cancel(err)
		} else { // its caller's context may have methods that take long
			a.engine.spawn(func() { victim.cancel(err) })
		}
	}
}

// unblock takes note of the end of the wait, which has come to err. It returns err, or what the call was told.
func (a *acquisition) unblock(err error) error {
	b := a.blocked
	if b == nil {
		return err
	}
	a.engine.deadlocks.leave(b)
	if dead, ok := errors.AsType[*DeadlockError](context.Cause(b.ctx)); ok && err != nil && b.caller.Err() == nil {
		err = dead
	}
	b.cancel(nil)
	a.setContext(b.caller)
	a.blocked = nil
	return err
}

// setContext gives the call another context. Waits that it has prepared were for the one before.
func (a *acquisition) setContext(ctx context.Context) {
	a.waits.stop()
	a.ctx, a.waits = ctx, nil
}

// ends says when the call gives up by itself: with its budget, with its context, or with a lease that
// it stands under and that is not renewed for ever. It is zero if nothing ends it.
func (a *acquisition) ends(leases []*Lease) (ends time.Time) {
	sooner := func(t time.Time) {
		if ends.IsZero() || t.Before(ends) {
			ends = t
		}
	}
	if a.cfg.wait != WaitForever {
		sooner(a.began.Add(a.cfg.wait))
	}
	if deadline, ok := a.ctx.Deadline(); ok {
		sooner(deadline)
	}
	for _, x := range leases {
		if at := x.tenure.lasts(); at != clock.Never {
			sooner(a.engine.clock.Time(at))
		}
	}
	return ends
}

// lasts is when the tenure ends however often it is renewed; clock.Never if nothing ends it.
func (t *tenure) lasts() clock.Awake {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cfg.noRenewal {
		return min(t.holdEnd, t.validUntil())
	}
	return t.holdEnd
}

// stands says whether x is held at now.
func (x *Lease) stands(now clock.Reading) bool {
	t := x.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	return !x.ended && x.loss == nil && t.leftAt(now) > 0
}

// enter takes note of a call that begins to wait. If that closes a circle, one call of it is told: the
// one that would give up first, because no other one can go on before that, or b if none would give up sooner. The
// result is who has to be told, and what.
func (d *deadlocks) enter(b *blocked, now clock.Reading) map[*blocked]*DeadlockError {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range b.holds {
		name := h.lease.name
		if d.held[name] == nil {
			if d.held == nil {
				d.held = make(map[string]map[*hold]struct{})
			}
			d.held[name] = make(map[*hold]struct{})
		}
		d.held[name][h] = struct{}{}
	}
	victims := make(map[*blocked]*DeadlockError)
	for victim, err := d.search(b, now); victim != nil; victim, err = d.search(b, now) {
		if victim == b { // all circles lead through it, so nobody else has to give up
			for v := range victims {
				v.doomed = false
			}
			d.forget(b)
			return map[*blocked]*DeadlockError{b: err}
		}
		victim.doomed, victims[victim] = true, err
	}
	for v := range victims {
		v.doomed = false
		if still, _ := d.search(b, now); still == nil { // the others are enough
			delete(victims, v)
			continue
		}
		v.doomed = true
	}
	return victims
}

// leave takes note of the end of a call's wait.
func (d *deadlocks) leave(b *blocked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(b)
}

func (d *deadlocks) forget(b *blocked) {
	for _, h := range b.holds {
		delete(d.held[h.lease.name], h)
		if len(d.held[h.lease.name]) == 0 {
			delete(d.held, h.lease.name)
		}
	}
}

// maxSearch is how many leases a search looks at. What is larger is not found.
const maxSearch = 10_000

// search looks for the circle that b has closed. It returns the call that has to be told, with its
// error, or nil if b can go on.
func (d *deadlocks) search(b *blocked, now clock.Reading) (victim *blocked, err *DeadlockError) {
	c := d.inTheWay(b, now)
	for _, v := range c.byPatience(b) {
		if ring := c.around(v); ring != nil {
			return v, tell(ring)
		}
	}
	return nil, nil
}

// circle is calls that wait for one another: none of them can go on before another one has given up.
// For each one it has the leases that keep it out, as far as they are of these calls.
type circle map[*blocked][]*hold

// inTheWay returns the circle that b waits in. It is empty if b can go on.
//
// It begins with all calls that b could have to wait for, and takes out those that can go on, until
// there are no more. To look for a way back to b instead would not do: of a semaphore, all holders
// have to be stuck, and each of them may be so because of another one.
func (d *deadlocks) inTheWay(b *blocked, now clock.Reading) circle {
	c := make(circle)
	var found []*blocked
	left := maxSearch
	for todo := []*blocked{b}; len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, known := c[v]; known {
			continue
		}
		c[v], found = nil, append(found, v)
		for h := range d.held[v.name] {
			if left--; left < 0 {
				return nil
			}
			if h.keepsOut(v, now) {
				c[v], todo = append(c[v], h), append(todo, h.call)
			}
		}
	}
	for before := len(c) + 1; len(c) < before; {
		before = len(c)
		for _, v := range slices.Backward(found) { // of a chain, the last one goes on first
			c.goesOn(v)
		}
	}
	if _, stuck := c[b]; !stuck {
		return nil
	}
	return c
}

// goesOn takes v out if what is left of the circle does not keep it out.
func (c circle) goesOn(v *blocked) {
	holds, in := c[v]
	if !in {
		return
	}
	c[v] = slices.DeleteFunc(holds, func(h *hold) bool { _, stuck := c[h.call]; return !stuck })
	if !v.stuck(c[v]) {
		delete(c, v)
	}
}

// stuck says whether b cannot go on before one of the holders does.
func (b *blocked) stuck(holders []*hold) bool {
	permits, limit := make(map[*tenure]bool), b.cfg.limit
	for _, h := range holders {
		t := h.lease.tenure
		if b.slot != nil || b.cfg.limit <= 1 || t.cfg.limit <= 1 {
			return true
		}
		permits[t], limit = true, min(limit, t.cfg.limit)
	}
	return len(permits) > 0 && len(permits) >= limit // none is left for b
}

// byPatience returns the calls, with the one first that would give up first. Of several that is b, which
// has come last.
func (c circle) byPatience(b *blocked) []*blocked {
	return slices.SortedFunc(maps.Keys(c), func(v, w *blocked) int {
		switch {
		case v.ends.Equal(w.ends) && v != b && w != b:
			return 0
		case w.ends.IsZero() && !v.ends.IsZero(), v.ends.Equal(w.ends) && v == b:
			return -1
		case v.ends.IsZero(), v.ends.Equal(w.ends):
			return 1
		default:
			return v.ends.Compare(w.ends)
		}
	})
}

// around returns the shortest way from v back to itself, or nil. Each hold's call waits for the lease of
// the next one, and the last one's call for that of the first, which is v's.
func (c circle) around(v *blocked) []*hold {
	type step struct {
		from *blocked
		by   *hold
	}
	came := make(map[*blocked]step)
	for todo := []*blocked{v}; len(todo) > 0; todo = todo[1:] {
		for _, h := range c[todo[0]] {
			if _, known := came[h.call]; !known {
				came[h.call] = step{todo[0], h}
				todo = append(todo, h.call)
			}
		}
	}
	var ring []*hold
	for at := v; ; {
		s, reached := came[at]
		if !reached {
			return nil
		}
		ring = append(ring, s.by)
		if at = s.from; at == v {
			slices.Reverse(ring[1:])
			return ring
		}
	}
}

// keepsOut says whether b cannot have what it waits for while h's lease stands. For two of a
// semaphore that depends on how many there are.
func (h *hold) keepsOut(b *blocked, now clock.Reading) bool {
	x := h.lease
	switch {
	case h.call.doomed || h.call.ctx.Err() != nil || !x.stands(now):
		return false
	case b.slot != nil:
		return x.inside == b.slot
	default:
		return !x.tenure.shared() || !b.cfg.shared
	}
}

// tell makes the error for the call that the ring begins with.
func tell(ring []*hold) *DeadlockError {
	err := &DeadlockError{}
	for _, h := range ring {
		err.Circle = append(err.Circle, DeadlockCall{
			Label: h.call.cfg.label,
			Holds: h.lease.name, HoldsTemplate: h.lease.cfg.template,
			WaitsFor: h.call.name, WaitsForTemplate: h.call.cfg.template,
		})
	}
	return err
}
