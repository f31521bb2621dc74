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
	kind    string // of the outermost lease, if it is inside of one
	lost    bool   // it was seen to be; protected by scene.mu
}

func (p *part) process() *process { return p.holding.request.process }

func (p *part) job() *job { return p.holding.request.job }

// outermost says whether h has re-entered nothing.
func (h *holding) outermost() bool { return h.parts[0].Inside() == nil }

// fences are the largest that were seen of a name.
type fences struct{ exclusive, any uint64 }

// enter takes note of a lease as soon as it is there: nobody may be trusted beside it.
func (s *scene) enter(r *request, x leases) *holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, h := r.job, &holding{lease: x, request: r, since: time.Now()}
	r.local = r.local || x.Degraded()
	s.moves++
	s.note("%v has %v, degraded %v", r, x, x.Degraded())
	s.count(e.way == several, "leases of several names")
	s.count(r.kept != nil && r.kept.used == 1, "leases by a hand-off")
	if drain := r.process.drain; !drain.IsZero() && r.began.After(drain) && e.depth == 0 {
		s.fault("%v: new work while its process drains", r)
	}
	for _, one := range core.Parts(x) {
		p := &part{Lease: one, holding: h, kind: e.kind}
		outer := one.Inside()
		if outer != nil {
			i := slices.IndexFunc(s.parts, func(q *part) bool { return q.Lease == outer })
			p.kind = s.parts[i].kind
		}
		turn := slices.ContainsFunc(s.parts, func(q *part) bool { return q.Token() == p.Token() && q.Inside() == nil })
		s.count(outer == nil && turn, "turns without a command")
		s.count(outer != nil, "re-entries")
		s.count(true, "leases")
		s.count(one.Degraded(), "degraded leases")
		s.count(p.kind == reader, "readers")
		s.count(p.kind == limited, "holders of a limit")
		h.parts, s.parts = append(h.parts, p), append(s.parts, p)
		s.beside(p)
		s.inOrder(p)
		if outer != nil {
			continue
		}
		if left := time.Until(p.ValidUntil()); e.way == several && p.Err() == nil && left < max(s.ttl, e.ttl)/3-slack {
			s.fault("%v: %q counts as held with the others, and has %v left", r, p.Name(), left)
		}
		if one.Degraded() && (!e.local || s.refusedLately(p) || s.calm(r.process, r.began.Add(-s.linger()))) {
			s.fault("%v: a degraded lease, unasked, without an outage, or after a refusal", r)
		}
	}
	if e.wrong && !h.outermost() {
		s.fault("%v: %s inside of another kind", r, e.kind)
	}
	s.notDone(h)
	if e.bound == maxHeld && h.outermost() {
		context.AfterFunc(x.Context(), func() { s.stopped(h) })
	}
	return h
}

// maxHold is that of jobs that have one.
func (s *scene) maxHold() time.Duration { return (s.ttl / 3).Truncate(time.Millisecond) }

// stopped fails the test if MaxHold has ended h before its time, which begins when all of h is there.
func (s *scene) stopped(h *holding) {
	lost, ok := errors.AsType[*core.LostError](h.lease.Err())
	if early := time.Until(h.since.Add(s.maxHold())); ok && lost.Reason == core.ReasonMaxHold && early > 0 {
		s.fault("%v: %v, %v before its time", h.request, lost, early)
	}
}

// refusedLately says whether the server has called the name held, to whoever asks for p, because of another process. The caller
// holds the mutex.
func (s *scene) refusedLately(p *part) bool {
	r := p.holding.request
	for _, x := range s.grants {
		if x.process == r.process && x.claim.Name == p.Name() && !x.until.Before(r.held) {
			return false
		}
	}
	return !r.held.IsZero() && time.Since(r.held) < max(s.ttl, r.job.ttl)
}

// beside fails the test if somebody else is trusted beside p. The caller holds the mutex.
func (s *scene) beside(p *part) {
	limit, holders := p.job().limit, 1
	for _, q := range s.parts {
		if q == p || q.lost || s.robbed[q.Token()] || s.robbed[p.Token()] || q.Name() != p.Name() || q.Err() != nil || p.Err() != nil || related(p.Lease, q.Lease) {
			continue
		}
		switch inside := p.Token() == q.Token(); {
		case p.process() != q.process() && (p.Degraded() || q.Degraded()):
		case p.kind == reader && q.kind == reader:
		case p.kind == limited && q.kind == limited && !inside:
			if p.Inside() == nil && q.Inside() == nil {
				holders, limit = holders+1, min(limit, q.job().limit)
			}
		default:
			s.fault("%v and %v are both trusted with %q", q.holding.request, p.holding.request, p.Name())
		}
	}
	if holders > max(1, limit) {
		s.fault("%v makes %d holders of %q, with a limit of %d", p.holding.request, holders, p.Name(), limit)
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
	fence, largest := p.Fence(), s.fences[p.Name()]
	switch outer := p.Inside(); {
	case outer != nil:
		if fence != outer.Fence() {
			s.fault("%v has re-entered %v and has another fence", p, outer)
		}
		return
	case s.robbed[p.Token()]:
		return
	case p.Degraded(), p.kind == limited:
		if fence != 0 {
			s.fault("%v, degraded %v, %s, has a fence", p, p.Degraded(), p.kind)
		}
		return
	case p.kind == reader: // readers may share one
		if fence <= largest.exclusive && p.Err() == nil {
			s.fault("%v: fence %d after %d", p, fence, largest.exclusive)
		}
	default:
		if fence <= largest.any && p.Err() == nil { // else it may have been granted before
			s.fault("%v: fence %d after %d", p, fence, largest.any)
		}
		largest.exclusive = max(largest.exclusive, fence)
	}
	largest.any = max(largest.any, fence)
	s.fences[p.Name()] = largest
	if x := s.grants[p.Token()]; p.kind == minHeld && x != nil {
		s.kept = append(s.kept, &kept{name: p.Name(), token: p.Token(), until: x.first.Add(p.job().minHold)})
	}
}

// alone fails the test if somebody is trusted while the server gives the name to another token, or
// if it is kept. The caller holds the mutex.
func (s *scene) alone(x *grant) {
	for _, p := range s.parts {
		if p.lost || s.robbed[p.Token()] || p.Name() != x.claim.Name || p.Degraded() || p.Token() == x.claim.Token || p.Err() != nil {
			continue
		}
		if p.kind == reader && x.claim.Shared() || p.kind == limited && x.claim.Limit > 1 {
			continue
		}
		s.fault("%v is trusted with %q, and the server gives it to %v", p.holding.request, p.Name(), x.request)
	}
	for _, k := range s.kept {
		if left := time.Until(k.until); k.name == x.claim.Name && k.token != x.claim.Token && left > 0 && k.used == 0 && !s.robbed[k.token] {
			s.fault("%v is given %q, which is kept for another %v", x.request, k.name, left)
		}
	}
}

// isLost says whether h was lost, and not just given back. The caller holds the mutex.
func (s *scene) isLost(h *holding) (lost bool) {
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
	s.count(true, "lost leases")
	s.note("%v has lost %v: %v", p.holding.request, p.Lease, err)
	bounded := func(bound string) bool { // p, or what it is inside of
		return slices.ContainsFunc(s.parts, func(q *part) bool { return q.job().bound == bound && related(p.Lease, q.Lease) })
	}
	explained := !p.process().closing.IsZero() || s.robbed[p.Token()] || !s.calm(p.process(), p.holding.since.Add(-s.linger())) ||
		lost.Reason == core.ReasonMaxHold && bounded(maxHeld) || lost.Reason == core.ReasonExpired && bounded(unwatched)
	if !explained {
		s.fault("%v: %v for no reason", p.holding.request, err)
	}
	return true
}
