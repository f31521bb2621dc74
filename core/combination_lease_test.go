package core_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// holding is a lease, or several, in somebody's hands.
type holding struct {
	lease   leases
	request *request
	since   time.Time
	parts   []*part

	// Protected by scene.mu.
	over   time.Time // when its end was answered; zero until then
	unsure bool      // whether the end took effect is not known
	spoilt bool      // it, or a part of it, was lost before its end began
}

// leases is a *core.Lease or a *core.LeaseSet.
type leases interface {
	Context() context.Context
	Err() error
	Degraded() bool
	Release(context.Context) error
	Complete(context.Context) error
	Finish(context.Context, error) error
}

// part is the lease of one name.
type part struct {
	*core.Lease
	holding *holding
	name    string
	kind    kind // of the outermost lease, if it is inside of one
	lost    bool // it was seen to be; protected by scene.mu
}

func (p *part) process() *process { return p.holding.request.process }

// kind is what the lease is.
func (h *holding) kind() kind { return h.request.job.kind }

// fences are the largest that were seen of a name.
type fences struct{ exclusive, any uint64 }

// reserved is a name that is kept by nobody.
type reserved struct {
	name, token string
	until       time.Time
	handoff     core.Handoff // but for who has this
}

// enter takes note of a lease as soon as it is there: nobody may be trusted beside it.
func (s *scene) enter(r *request, x leases) *holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &holding{lease: x, request: r, since: time.Now()}
	r.local = r.local || x.Degraded()
	s.moves++
	s.note("%v has %v, degraded %v", r, x, x.Degraded())
	if at, ok := r.process.drained(); ok && r.began.After(at) && r.job.depth == 0 {
		s.fault("%v: new work while its process drains", r)
	}
	if r.job.wrong && core.Parts(x)[0].Inside() != nil {
		s.fault("%v: %s inside of another kind", r, r.job.kind)
	}
	for _, one := range core.Parts(x) {
		p := &part{Lease: one, holding: h, name: one.Name(), kind: r.job.kind}
		if outer := one.Inside(); outer != nil {
			i := slices.IndexFunc(s.parts, func(q *part) bool { return q.Lease == outer })
			p.kind = s.parts[i].kind
		}
		h.parts = append(h.parts, p)
		s.parts = append(s.parts, p)
		s.beside(p)
		s.inOrder(p)
		if left := time.Until(p.ValidUntil()); r.job.way == several && p.Inside() == nil && p.Err() == nil && left < max(s.ttl, r.job.ttl)/3-slack {
			s.fault("%v: %q counts as held with the others, and has %v left", r, p.name, left)
		}
		if one.Degraded() && one.Inside() == nil && (!r.job.local || s.refusedLately(p) || s.calm(r.process, r.began.Add(-s.linger()))) {
			s.fault("%v: a degraded lease, unasked, without an outage, or after a refusal", r)
		}
	}
	s.notDone(h)
	if r.job.bound == maxHeld && h.parts[0].Inside() == nil {
		context.AfterFunc(x.Context(), func() { s.stopped(h) })
	}
	return h
}

// maxHold is that of jobs that have one.
func (s *scene) maxHold() time.Duration { return (s.ttl / 3).Truncate(time.Millisecond) }

// stopped fails the test if MaxHold has ended h before its time, which begins when all of h is there.
func (s *scene) stopped(h *holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost, ok := errors.AsType[*core.LostError](h.lease.Err())
	if early := time.Until(h.since.Add(s.maxHold())); ok && lost.Reason == core.ReasonMaxHold && early > 0 {
		s.fault("%v: %v, %v before its time", h.request, lost, early)
	}
}

// overlong fails the test if h stands though its MaxHold is over. The caller holds the mutex.
func (s *scene) overlong(h *holding) {
	over := h.since.Add(s.maxHold() + slack)
	if h.request.job.bound == maxHeld && h.parts[0].Inside() == nil && h.over.IsZero() && h.lease.Err() == nil && time.Now().After(over) {
		s.fault("%v stands since %v, and its MaxHold is %v", h.request, time.Since(h.since), s.maxHold())
	}
}

// refusedLately says whether the server has called the name held, to whoever asks for p, because of another process. The caller
// holds the mutex.
func (s *scene) refusedLately(p *part) bool {
	r := p.holding.request
	for _, t := range s.tenancies {
		if t.process == r.process && t.name == p.name && !t.until.Before(r.held) {
			return false
		}
	}
	return !r.held.IsZero() && time.Since(r.held) < max(s.ttl, r.job.ttl)
}

// beside fails the test if somebody else is trusted beside p. The caller holds the mutex.
func (s *scene) beside(p *part) {
	limit, holders := p.holding.request.job.limit, 1
	for _, q := range s.parts {
		if q == p || q.lost || s.robbed[q.Token()] || s.robbed[p.Token()] || q.name != p.name || q.Err() != nil || p.Err() != nil || related(p.Lease, q.Lease) {
			continue
		}
		switch inside := p.Token() == q.Token(); {
		case p.process() != q.process() && (p.Degraded() || q.Degraded()):
		case p.kind == reader && q.kind == reader:
		case p.kind == limited && q.kind == limited && !inside:
			if p.Inside() == nil && q.Inside() == nil {
				holders, limit = holders+1, min(limit, q.holding.request.job.limit)
			}
		default:
			s.fault("%v and %v are both trusted with %q", q.holding.request, p.holding.request, p.name)
		}
	}
	if holders > max(1, limit) {
		s.fault("%v makes %d holders of %q, with a limit of %d", p.holding.request, holders, p.name, limit)
	}
}

// related says whether one of the leases has re-entered the other one.
func related(x, y *core.Lease) bool {
	inside := func(x, y *core.Lease) bool {
		for x != nil && x != y {
			x = x.Inside()
		}
		return x != nil
	}
	return inside(x, y) || inside(y, x)
}

// inOrder compares p's fence with those before it. The caller holds the mutex.
func (s *scene) inOrder(p *part) {
	fence, kind := p.Fence(), p.kind
	if outer := p.Inside(); outer != nil {
		if fence != outer.Fence() {
			s.fault("%v has re-entered %v and has another fence", p, outer)
		}
		return
	}
	if s.robbed[p.Token()] {
		return
	}
	if p.Degraded() || kind == limited {
		if fence != 0 {
			s.fault("%v, degraded %v, %s, has a fence", p, p.Degraded(), kind)
		}
		return
	}
	f := s.fences[p.name]
	if f == nil {
		f = new(fences)
		s.fences[p.name] = f
	}
	before := f.any
	if kind == reader {
		before = f.exclusive
	} else {
		defer func() { f.exclusive = max(f.exclusive, fence) }()
	}
	if fence <= before && p.Err() == nil { // else it may have been granted before
		s.fault("%v: fence %d after %d", p, fence, before)
	}
	f.any = max(f.any, fence)
	if kind == minHeld {
		if t := s.tenancies[p.Token()]; t != nil {
			until := t.first.Add(p.holding.request.job.minHold)
			s.reserved = append(s.reserved, reserved{name: p.name, token: p.Token(), until: until})
		}
	}
}

// alone fails the test if somebody is trusted while the server gives the name to another token, or
// if it is kept by nobody yet. The caller holds the mutex.
func (s *scene) alone(t *tenancy) {
	now := time.Now()
	for _, p := range s.parts {
		if p.lost || s.robbed[p.Token()] || p.name != t.name || p.Degraded() || p.Token() == t.token || p.Err() != nil {
			continue
		}
		if p.kind == reader && t.claim.Shared() || p.kind == limited && t.claim.Limit > 1 {
			continue
		}
		s.fault("%v is trusted with %q, and the server gives it to %v", p.holding.request, p.name, t.request)
	}
	for _, r := range s.reserved {
		if r.name == t.name && r.token != t.token && now.Before(r.until) {
			s.fault("%v is given %q, which is kept for another %v", t.request, t.name, r.until.Sub(now))
		}
	}
}

// isLost says whether h was lost, and not just given back. The caller holds the mutex.
func (s *scene) isLost(h *holding) bool {
	lost := false
	for _, p := range h.parts {
		lost = s.look(p) || lost
	}
	return lost
}

// look says whether p was lost. If so, there is a reason, and it stays so. The caller holds the mutex.
func (s *scene) look(p *part) bool {
	err := p.Err()
	lost, ok := errors.AsType[*core.LostError](err)
	if p.lost && !ok {
		s.fault("%v was lost, and now it is %v", p.Lease, err)
	}
	if !ok || p.lost {
		return ok
	}
	p.lost = true
	s.note("%v has lost %v: %v", p.holding.request, p.Lease, err)
	explained := p.process().isClosing() || s.robbed[p.Token()] || !s.calm(p.process(), p.holding.since.Add(-s.linger())) ||
		lost.Reason == core.ReasonMaxHold && s.bounded(p, maxHeld) || lost.Reason == core.ReasonExpired && s.bounded(p, unwatched)
	if !explained {
		s.fault("%v: %v for no reason", p.holding.request, err)
	}
	return true
}

// bounded says whether p, or what it is inside of, ends by itself. The caller holds the mutex.
func (s *scene) bounded(p *part, b holdBound) bool {
	return slices.ContainsFunc(s.parts, func(q *part) bool {
		return q.holding.request.job.bound == b && related(p.Lease, q.Lease)
	})
}
