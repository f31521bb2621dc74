package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// What nobody has any more is given back within cleanedUp, where the link is in order; within
// abandoned, if it was granted to a command that nobody waited for any more, and whose answer
// nobody hears, or nobody but a driver that has gone local since.
const (
	cleanedUp = 300 * time.Millisecond
	abandoned = time.Second
)

// audit looks for names that the server gives to a token which nobody has, and for places in
// line at which nobody stands. It is called by one goroutine at a time.
func (s *scene) audit() {
	for _, p := range s.processes {
		if s.calm(p, time.Now()) {
			p.link.Deliver() // replies to those who wait come to be held back later
		}
	}
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, p := range s.parts {
		s.overlong(p.holding)
		if s.look(p); p.Err() != nil && p.Context().Err() == nil {
			s.fault("%v: %v, and its context stands", p.holding.request, p.Err())
		}
	}
	for _, t := range s.tenancies {
		since, ok := s.orphaned(t)
		if !ok || !s.calm(t.process, t.last) && !s.calm(t.process, since.Add(-2*s.bound(t.request.job))) {
			continue // what should have given it back may have been lost
		}
		if t.inLine && !s.calm(t.process, t.request.over.Add(-2*s.bound(t.request.job))) {
			continue // and so may what should have left the queue before
		}
		if over := t.request.over; t.last.Sub(over) > max(s.ttl, t.request.job.ttl) {
			continue // a command that is executed so late may outlive its clean-up: docs/decisions/002-late-commands.md
		}
		bound := cleanedUp
		if t.unheard || t.request.local {
			bound = abandoned
		}
		if age := now.Sub(since); age > bound {
			s.fault("%v: %q is taken by what it has left behind, %v ago", t.request, t.name, age)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		s.lineOf(name, now)
	}
}

// orphaned says since when nobody has had a token. The caller holds the mutex.
func (s *scene) orphaned(t *tenancy) (since time.Time, ok bool) {
	since = t.last
	if r := t.request; r == nil || r.over.IsZero() {
		return since, false
	} else if r.over.After(since) {
		since = r.over
	}
	for _, r := range s.waiting() { // whose token it is, if it is in the same line
		if r.process == t.process && slices.Contains(r.job.names, t.name) && r.job.line() == t.request.job.line() {
			return since, false
		}
	}
	for _, p := range s.parts {
		if p.Token() != t.token {
			continue
		}
		h := p.holding
		if h.over.IsZero() || h.unsure || p.lost {
			return since, false
		}
		if h.over.After(since) {
			since = h.over
		}
	}
	t.process.mu.Lock()
	defer t.process.mu.Unlock()
	return since, !t.process.left && t.handoff == "" && t.until.After(time.Now()) && s.owns(t)
}

// owns asks the server.
func (s *scene) owns(t *tenancy) bool {
	alone, reader, limited := driver.Claim{Name: t.name, Token: t.token}, driver.Claim{Name: t.name, Token: t.token}, driver.Claim{Name: t.name, Token: t.token}
	reader.Limit, limited.Limit = driver.Readers, 2
	return slices.Contains(s.store.Renew(context.Background(), []driver.Claim{alone, reader, limited}), nil)
}

// lineOf fails the test if somebody stands in line though nobody has asked for a while. The
// caller holds the mutex.
func (s *scene) lineOf(name string, now time.Time) {
	var last time.Time
	for _, r := range s.requests {
		if !slices.Contains(r.job.names, name) {
			continue
		}
		if r.over.IsZero() {
			return
		}
		if r.over.After(last) {
			last = r.over
		}
	}
	for _, p := range s.processes {
		bound := cleanedUp
		if !s.calm(p, last.Add(-abandoned)) { // a clean-up that was failing is tried again after a pause
			bound = abandoned
		}
		if now.Sub(last) <= bound || !s.calm(p, last) || s.unheard(p) {
			return
		}
	}
	info, err := s.store.Inspect(context.Background(), name)
	if err != nil {
		s.fault("inspect: %v", err)
	}
	for _, w := range info.Line {
		if came := now.Add(-w.Waited); w.Alive && !came.After(last) && !s.cameLate(name, came) {
			s.fault("somebody stands in line for %q since %v, and nobody wants it since %v", name, w.Waited, now.Sub(last))
		}
	}
}

// cameLate says whether a place may be that of a command which was executed more than a TTL after its call had ended.
// Such a command may outlive its clean-up, as in audit. The caller holds the mutex.
func (s *scene) cameLate(name string, came time.Time) bool {
	return slices.ContainsFunc(s.requests, func(r *request) bool {
		return slices.Contains(r.job.names, name) && !s.calm(r.process, came.Add(-1)) && came.Sub(r.over) > max(s.ttl, r.job.ttl)
	})
}

// nothingIsLeft is called when everybody has given back what they had.
func (s *scene) nothingIsLeft() {
	for _, p := range s.processes {
		s.heal(p)
	}
	time.Sleep(cleanedUp + slack)
	s.audit()
	time.Sleep(s.lifetime() + driver.PlaceLife(2*s.ttl))
	synctest.Wait()
	for _, name := range []string{"a", "b", "c"} {
		info, err := s.store.Inspect(context.Background(), name)
		if err != nil || info.Held || slices.ContainsFunc(info.Line, func(w inspect.WaiterInfo) bool { return w.Alive }) {
			s.fault("%q is taken for ever: %+v, %v", name, info, err)
		}
	}
	for i, p := range s.processes {
		for _, name := range []string{"a", "b", "c"} {
			c := driver.Claim{Name: name, Token: fmt.Sprint("auditor ", i), TTL: s.ttl}
			if _, err := p.fallback.Acquire(context.Background(), c); err != nil && !p.left {
				s.fault("process %d: %q is taken for ever: %v", i, name, err)
			}
			_ = p.fallback.Release(context.Background(), c)
		}
		if left := p.locks.Remains(); len(left) > 0 && !p.left {
			s.fault("process %d keeps %q", p.number, left)
		}
		s.close(p, time.Minute)
	}
	synctest.Wait()
	for _, p := range s.processes {
		if p.told != 0 && !p.left {
			s.fault("process %d: its observer has heard of %d leases more than have ended", p.number, p.told)
		}
	}
}
