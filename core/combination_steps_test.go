package core_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// work does what the job says while it holds what it has got.
func (s *scene) work(ctx context.Context, h *holding) {
	e := h.request.job
	s.pause(ctx, e)
	for _, step := range e.steps {
		switch step {
		case confirm:
			s.confirm(ctx, h)
		case siblings:
			s.siblings(ctx, h)
		case nest:
			s.nest(ctx, h)
		case cross:
			s.cross(ctx, h)
		case rob:
			s.rob(h)
		case nothing:
		}
		s.pause(ctx, e)
	}
}

func (s *scene) pause(ctx context.Context, e *job) {
	until := time.Now().Add(e.hold)
	select {
	case <-time.After(e.hold):
	case <-ctx.Done():
		if e.deaf {
			time.Sleep(time.Until(until))
		}
	}
}

// confirm asks whether there is enough of the lease left.
func (s *scene) confirm(ctx context.Context, h *holding) {
	stood, began := ctx.Err() == nil, time.Now()
	err := core.Confirm(ctx)
	s.note("%v: Confirm is %v", h.request, err)
	s.asked(h, confirm, began, err, 2*(1+h.request.job.depth)*len(h.parts))
	if err != nil && stood && ctx.Err() == nil && !s.isRobbed(h) && s.calm(h.request.process, began.Add(-s.linger())) {
		s.fault("%v: Confirm is %v, and the link is in order", h.request, err)
	}
}

// isRobbed says whether somebody has deleted a lock of h, or of what it is inside of.
func (s *scene) isRobbed(h *holding) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; h != nil; h = h.request.job.outer {
		if slices.ContainsFunc(h.parts, func(p *part) bool { return s.robbed[p.Token()] }) {
			return true
		}
	}
	return false
}

// rob deletes the last lock of h at the server, as an operator could. From then on nothing is promised of its token, but that its holder
// hears of the loss, and that nothing else suffers.
func (s *scene) rob(h *holding) {
	s.mu.Lock()
	p := h.parts[len(h.parts)-1]
	t := s.tenancies[p.Token()]
	if t == nil || p.Inside() != nil || p.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.robbed[t.token] = true
	s.reserved = slices.DeleteFunc(s.reserved, func(r reserved) bool { return r.token == t.token })
	s.note("%v: somebody deletes %q", h.request, p.name)
	s.mu.Unlock()
	robber := &server{Store: s.store, scene: s, process: p.process(), mu: s.order}
	_ = robber.Release(context.Background(), driver.Claim{Name: t.name, Token: t.token, Limit: t.claim.Limit}) // it may be over
}

// asked judges the answer to a question about a lease.
func (s *scene) asked(h *holding, what step, began time.Time, err error, renewals int) {
	if took := time.Since(began); took > time.Duration(renewals)*min(2*s.ttl/5, bound)+slack {
		s.fault("%v: %s took %v", h.request, what, took)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return
	}
	for _, p := range h.parts {
		s.beside(p)
	}
	if time.Now().Equal(began) && s.isLost(h) {
		s.fault("%v: %s is nil, and %v", h.request, what, h.lease.Err())
	}
}

// siblings re-enter the lease, at the same time.
func (s *scene) siblings(ctx context.Context, h *holding) {
	outer := h.request.job
	var all sync.WaitGroup
	for i := range 2 + outer.choice%3 {
		inner := s.inside(h, outer.names[:1])
		switch i := (outer.choice + i) % 5; {
		case i == 0:
			inner.wait = 0
		case i == 1:
			inner.wait = 2 * time.Millisecond
		case i == 2 && inner.kind == exclusive:
			inner.kind = reader
		case i == 3 && inner.depth < 2:
			inner.steps = []step{siblings}
		case i == 4 && inner.kind != exclusive:
			inner.kind, inner.wrong = exclusive, true
		case i == 4 && h.kind() == exclusive:
			inner.kind, inner.wrong = limited, true
		}
		all.Go(func() { s.within(ctx, inner) })
	}
	all.Wait()
}

// nest asks for other names, and for those it has if they can be re-entered.
func (s *scene) nest(ctx context.Context, h *holding) {
	outer := h.request.job
	inner := s.inside(h, []string{"a", "b", "c"}[outer.choice%3:])
	inner.way = several
	if h.kind() == reader || h.kind() == limited {
		inner.names = slices.DeleteFunc(inner.names, func(name string) bool { return slices.Contains(outer.names, name) })
		inner.kind = exclusive
	}
	if len(inner.names) > 0 {
		s.within(ctx, inner)
	}
}

// cross asks for one more name, in whatever order, and with a budget. Others may have it, and wait for ours.
func (s *scene) cross(ctx context.Context, h *holding) {
	outer := h.request.job
	inner := s.inside(h, []string{[]string{"a", "b", "c"}[(outer.choice+outer.depth)%3]})
	if slices.Contains(outer.names, "a") && outer.choice%4 > 0 {
		inner.names = []string{"b"}
	} else if slices.Contains(outer.names, "b") && outer.choice%4 > 0 {
		inner.names = []string{"a"}
	}
	inner.wait = s.ttl / time.Duration(1+outer.choice%4)
	if inner.depth < 3 && outer.choice%3 == 0 {
		inner.steps = []step{cross}
	}
	s.within(ctx, inner)
}

// inside is a job inside the lease of another one.
func (s *scene) inside(h *holding, names []string) *job {
	outer := h.request.job
	inner := &job{
		number: outer.number, process: outer.process, names: names, way: acquire, kind: h.kind(), limit: outer.limit, ttl: outer.ttl,
		wait: core.WaitForever, hold: 3 * time.Millisecond, ending: release, choice: outer.choice / 2, depth: outer.depth + 1, outer: h,
	}
	if inner.kind == deduped || inner.kind == minHeld {
		inner.kind = exclusive
	}
	return inner
}

func (s *scene) within(ctx context.Context, e *job) {
	if h := s.acquire(ctx, e); h != nil {
		s.work(h.lease.Context(), h)
		s.end(h)
	}
}
