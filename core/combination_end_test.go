package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

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

// marked is called when a completion is over.
func (s *scene) marked(x *ended, sure bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
				!m.ended.After(h.request.began) && x.first.Before(m.began.Add(dedupWindow)) {
				s.fault("%v is given %q, which was done", h.request, p.Name())
			}
		}
	}
}
