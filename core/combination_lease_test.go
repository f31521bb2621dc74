package core_test

import (
	"context"
	"errors"
	"fmt"
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
		if left := time.Until(p.ValidUntil()); e.way == several && p.Err() == nil && left < s.ttlOf(e)/3-slack {
			s.fault("%v: %q counts as held with the others, and has %v left", r, p.Name(), left)
		}
		patience := s.bound(e) / 2 / 8 * 7 // of the first of two commands
		if one.Degraded() && (!e.local || s.refusedLately(p) || s.slowAtMost(patience-time.Millisecond, r.process, r.began.Add(-s.linger()))) {
			s.fault("%v: a degraded lease, unasked, after a refusal, or without a silence as long as its patience", r)
		}
		s.count(one.Degraded() && !r.process.lossy, "degraded leases where it is only slow")
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
	return !r.held.IsZero() && time.Since(r.held) < s.ttlOf(r.job)
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

// ended is a lease whose end has begun.
type ended struct {
	*holding
	began time.Time
	lost  bool    // it was lost before
	marks []*mark // that it may leave
}

// mark is a dedup marker that is about to be left, or may have been.
type mark struct {
	name, work string
	ended      time.Time
	began      time.Time
	sure       bool
}

// work is what counts as the same work on a name: that on several names is another one.
func (e *job) work() string {
	if e.way != several || len(e.names) == 1 {
		return ""
	}
	return fmt.Sprint(e.names)
}

// ends is called before a lease ends, and its work is completed, if it is.
func (s *scene) ends(h *holding, completed bool) *ended {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &ended{holding: h, began: time.Now(), lost: s.isLost(h)}
	h.spoilt = x.lost
	for _, p := range h.parts {
		if completed {
			x.marks = append(x.marks, &mark{name: p.Name(), work: h.request.job.work(), began: x.began})
		}
	}
	s.marks = append(s.marks, x.marks...)
	return x
}

// end gives a lease back, in the job's way.
func (s *scene) end(h *holding) {
	e, x := h.request.job, h.lease
	alone := len(e.names) == 1 && e.depth == 0
	giveBack := func() error { return x.Release(s.stop) }
	switch {
	case e.ending == lateEnd:
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		s.give(h, lateEnd, func() error { return x.Release(gone) })
	case e.ending == finish:
		s.give(h, finish, func() error { return x.Finish(s.stop, nil) })
	case e.ending == detach && alone && e.way != several && (e.kind == exclusive || e.kind == deduped):
		s.detach(h)
	case e.ending == outlived && alone && e.kind != deduped:
		inner := s.inside(h, e.names)
		inner.wait = 0
		y := s.acquire(x.Context(), inner)
		s.give(h, release, giveBack)
		if y != nil {
			time.Sleep(inner.hold)
			s.end(y)
		}
	case e.kind == deduped && e.choice%2 == 0:
		s.give(h, completes, func() error { return x.Complete(s.stop) })
	default:
		s.give(h, release, giveBack)
	}
	_ = x.Release(s.stop) // changes nothing
}

// give ends a lease by a call, and judges its result.
func (s *scene) give(h *holding, how string, call func() error) {
	x := s.ends(h, h.request.job.kind == deduped && (how == completes || how == finish))
	err := call()
	s.note("%v: %s is %v", h.request, how, err)
	bound := s.bound(h.request.job)
	if len(x.marks) > 1 { // the first one of several has the marker, and ends last
		bound *= 2
	}
	if took := time.Since(x.began); took > bound+slack || how == lateEnd && took > slack {
		s.fault("%v: %s took %v", h.request, how, took)
	}
	if err == nil && x.lost {
		s.fault("%v: %s of what was lost is nil", h.request, how)
	}
	s.gone(x, err)
	s.marked(x, err == nil && !x.lost && (how == completes || !h.unsure))
}

// gone says that a lease has ended, with err.
func (s *scene) gone(x *ended, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !x.over.IsZero() {
		return
	}
	x.over = time.Now()
	s.moves++
	calm := s.calm(x.request.process, x.began.Add(-s.linger()))
	x.unsure = !calm
	lost := s.isLost(x.holding)
	switch {
	case err == nil:
	case errors.Is(err, core.ErrUnavailable):
		x.unsure = true
		if calm {
			s.fault("%v: its end is %v, and the link is in order", x.request, err)
		}
	case !errors.Is(err, core.ErrLost) || !lost:
		s.fault("%v: its end is %v, and %v", x.request, err, x.lease.Err())
	}
}

// detach leaves the name for who comes with a hand-off.
func (s *scene) detach(h *holding) {
	x, end := h.parts[0].Lease, s.ends(h, false)
	keep := time.Millisecond + (s.ttl * time.Duration(h.request.job.choice) / 50).Truncate(time.Millisecond)
	handoff, err := x.Detach(s.stop, keep)
	s.note("%v: Detach for %v is %v", h.request, keep, err)
	if err == nil {
		s.mu.Lock()
		s.kept = append(s.kept, &kept{name: x.Name(), token: x.Token(), until: end.began.Add(keep), handoff: handoff})
		s.mu.Unlock()
	} else if x.Err() == nil {
		if !errors.Is(err, core.ErrUnavailable) || !x.Degraded() {
			s.fault("%v: Detach is %v, and the lease stands", h.request, err)
		}
		s.give(h, release, func() error { return x.Release(s.stop) })
		return
	}
	s.gone(end, err)
}

// returned judges what Do or Campaign has returned after its function was called.
func (s *scene) returned(x *ended, err error) {
	e := x.request.job
	s.note("%v: %s is %v", x.request, e.way, err)
	want := errWork
	switch e.ending {
	case panics:
		want = errPanic
	case release:
		want = nil
	}
	s.mu.Lock()
	lost, told := s.isLost(x.holding), errors.Is(err, core.ErrLost)
	s.mu.Unlock()
	switch {
	case e.way == campaign && (x.lost || told || lost): // it goes on, also where the release has found the loss
	case want != nil && !errors.Is(err, want), want == nil && err != nil && !told:
		s.fault("%v: %s is %v, not %v", x.request, e.way, err, want)
	case x.lost && !told && !errors.Is(want, errPanic):
		s.fault("%v: %s is %v, and does not tell of the loss", x.request, e.way, err)
	case told && !lost:
		s.fault("%v: %s is %v, and nothing was lost", x.request, e.way, err)
	}
	s.gone(x, nil)
	s.marked(x, err == nil && !x.unsure)
}

// marked is called when a completion is over. If the first command's answer was lost, a lock that somebody has deleted looks like one
// that was completed.
func (s *scene) marked(x *ended, sure bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sure = sure && !slices.ContainsFunc(x.parts, func(p *part) bool { return s.robbed[p.Token()] })
	for _, m := range x.marks {
		m.ended, m.sure = time.Now(), sure
		s.count(sure, "completions")
	}
}

// mayBeDone says whether r may have found that its work is done. The caller holds the mutex.
func (s *scene) mayBeDone(r *request, since time.Time) bool {
	return slices.ContainsFunc(s.marks, func(m *mark) bool {
		return r.wants(m.name) && m.work == r.job.work() && (!m.sure || m.ended.Add(dedupWindow).After(since))
	})
}

// notDone fails the test if h was granted though its work is done. The caller holds the mutex.
func (s *scene) notDone(h *holding) {
	for _, p := range h.parts {
		x := s.grants[p.Token()]
		for _, m := range s.marks {
			if h.request.job.kind == deduped && m.name == p.Name() && m.work == h.request.job.work() && m.sure && x != nil &&
				!m.ended.After(h.request.began) && x.last.Before(m.began.Add(dedupWindow)) { // the grant may have been for another's wish at first
				s.fault("%v is given %q, which was done", h.request, p.Name())
			}
		}
	}
}
