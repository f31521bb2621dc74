package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// end gives a lease back, in the job's way.
func (s *scene) end(h *holding) {
	e, x := h.request.job, h.lease
	alone := len(e.names) == 1 && e.depth == 0
	switch {
	case e.ending == lateEnd:
		s.give(h, lateEnd, func() error { return x.Release(ended()) })
	case e.ending == finish:
		s.give(h, finish, func() error { return x.Finish(s.stop, nil) })
	case e.ending == detach && alone && e.way != several && (h.kind() == exclusive || h.kind() == deduped):
		s.detach(h)
	case e.ending == outlived && alone && e.kind != deduped:
		inner := s.inside(h, e.names)
		inner.wait = 0
		y := s.acquire(x.Context(), inner)
		s.give(h, release, func() error { return x.Release(s.stop) })
		if y != nil {
			time.Sleep(inner.hold)
			s.end(y)
		}
	case e.kind == deduped && e.choice%2 == 0:
		s.give(h, completes, func() error { return x.Complete(s.stop) })
	default:
		s.give(h, release, func() error { return x.Release(s.stop) })
	}
	_ = x.Release(s.stop) // changes nothing
}

// ended is a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// give ends a lease by a call, and judges its result.
func (s *scene) give(h *holding, how ending, call func() error) {
	marks := s.marks(h, h.request.job.kind == deduped && (how == completes || how == finish))
	wasLost, began := s.lost(h), time.Now()
	err := call()
	s.note("%v: %s is %v", h.request, how, err)
	bound := s.bound(h.request.job)
	if len(marks) > 1 { // the first one of several has the marker, and ends last
		bound *= 2
	}
	if took := time.Since(began); took > bound+slack || how == lateEnd && took > slack {
		s.fault("%v: %s took %v", h.request, how, took)
	}
	if err == nil && wasLost {
		s.fault("%v: %s of what was lost is nil", h.request, how)
	}
	s.gone(h, began, err)
	s.marked(marks, err == nil && !wasLost && (how == completes || !h.unsure))
}

// gone says that a lease has ended, with err.
func (s *scene) gone(h *holding, began time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h == nil || !h.over.IsZero() {
		return
	}
	h.over = time.Now()
	s.moves++
	calm := s.calm(h.request.process, began.Add(-s.linger()))
	h.unsure = !calm
	lost := s.isLost(h)
	switch {
	case err == nil:
	case errors.Is(err, core.ErrUnavailable):
		h.unsure = true
		if calm {
			s.fault("%v: its end is %v, and the link is in order", h.request, err)
		}
	case errors.Is(err, core.ErrLost):
		if !lost {
			s.fault("%v: its end is %v, and %v", h.request, err, h.lease.Err())
		}
	default:
		s.fault("%v: its end is %v", h.request, err)
	}
}

// lost says whether a lease was lost.
func (s *scene) lost(h *holding) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isLost(h)
}

// detach leaves the name for who comes with a hand-off.
func (s *scene) detach(h *holding) {
	x, began := h.parts[0].Lease, time.Now()
	keep := time.Millisecond + (s.ttl * time.Duration(h.request.job.choice) / 50).Truncate(time.Millisecond)
	handoff, err := x.Detach(s.stop, keep)
	s.note("%v: Detach for %v is %v", h.request, keep, err)
	if err == nil {
		s.mu.Lock()
		until := began.Add(keep)
		s.given = append(s.given, &given{handoff: handoff, until: until})
		if !s.robbed[x.Token()] { // a second "not the owner" means that the first command has released it
			s.reserved = append(s.reserved, reserved{x.Name(), x.Token(), until, handoff})
		}
		s.mu.Unlock()
	} else if x.Err() == nil {
		if !errors.Is(err, core.ErrUnavailable) || !x.Degraded() {
			s.fault("%v: Detach is %v, and the lease stands", h.request, err)
		}
		s.give(h, release, func() error { return x.Release(s.stop) })
		return
	}
	s.gone(h, began, err)
}

// returned judges what Do or Campaign has returned after its function was called.
func (s *scene) returned(h *holding, marks []*mark, wasLost bool, began time.Time, err error) {
	e := h.request.job
	s.note("%v: %s is %v", h.request, e.way, err)
	var want error
	switch e.ending {
	case panics:
		want = errPanic
	case release:
	default:
		want = errWork
	}
	told := errors.Is(err, core.ErrLost)
	switch {
	case e.way == campaign && (wasLost || told || s.lost(h)): // it goes on, also where the release has found the loss
	case want != nil && !errors.Is(err, want):
		s.fault("%v: %s is %v, not %v", h.request, e.way, err, want)
	case want == nil && err != nil && !told:
		s.fault("%v: %s is %v", h.request, e.way, err)
	case wasLost && !told && !errors.Is(want, errPanic):
		s.fault("%v: %s is %v, and does not tell of the loss", h.request, e.way, err)
	case told && !s.lost(h):
		s.fault("%v: %s is %v, and nothing was lost", h.request, e.way, err)
	}
	s.gone(h, began, nil)
	s.marked(marks, err == nil && !h.unsure)
}

// mark is a dedup marker that is about to be left, or may have been.
type mark struct {
	name, work   string
	began, ended time.Time
	sure         bool
}

// work is what counts as the same work on a name: that on several names is another one.
func (e *job) work() string {
	if e.way != several || len(slices.Compact(slices.Sorted(slices.Values(e.names)))) == 1 {
		return ""
	}
	return fmt.Sprint(e.names)
}

// marks is called before work is completed, if it is.
func (s *scene) marks(h *holding, completed bool) (marks []*mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.spoilt = s.isLost(h)
	for _, p := range h.parts {
		if completed {
			marks = append(marks, &mark{name: p.name, work: h.request.job.work(), began: time.Now()})
		}
	}
	s.allMarks = append(s.allMarks, marks...)
	return marks
}

// marked is called when it was.
func (s *scene) marked(marks []*mark, sure bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range marks {
		m.ended, m.sure = time.Now(), sure
	}
}

// mayBeDone says whether r may have found that its work is done. The caller holds the mutex.
func (s *scene) mayBeDone(r *request, since time.Time) bool {
	return slices.ContainsFunc(s.allMarks, func(m *mark) bool {
		return slices.Contains(r.job.names, m.name) && m.work == r.job.work() && (!m.sure || m.ended.Add(dedupWindow).After(since))
	})
}

// notDone fails the test if h was granted though its work is done. The caller holds the mutex.
func (s *scene) notDone(h *holding) {
	if h.request.job.kind != deduped {
		return
	}
	for _, p := range h.parts {
		t := s.tenancies[p.Token()]
		for _, c := range s.allMarks {
			if c.name == p.name && c.work == h.request.job.work() && c.sure && t != nil && !c.ended.After(h.request.began) && t.first.Before(c.began.Add(dedupWindow)) {
				s.fault("%v is given %q, which was done", h.request, p.name)
			}
		}
	}
}
