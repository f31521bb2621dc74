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

// faults does what the spells say, and looks for what was left behind while all is calm.
func (s *scene) faults() {
	type change struct {
		at   time.Duration
		make func()
	}
	var changes []change
	add := func(at time.Duration, f func()) { changes = append(changes, change{at, f}) }
	for _, spell := range s.spells {
		p, end := s.processes[spell.process], spell.at+spell.lasts
		add(spell.at, func() { s.strike(p, spell) })
		if spell.deliver {
			add(spell.at+spell.lasts/2, func() { p.link.Deliver() })
		}
		add(end, func() { s.heal(p) })
		for n := range time.Duration(4) {
			add(end+cleanedUp<<n+slack, s.audit)
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	for _, c := range changes {
		time.Sleep(c.at - time.Since(s.began))
		c.make()
	}
}

func (s *scene) strike(p *process, spell spell) {
	s.note("link: %+v", spell)
	s.mu.Lock()
	p.rough, p.lag = true, max(p.lag, spell.there+spell.back)
	s.mu.Unlock()
	if spell.there > 0 {
		p.link.Delay(spell.there, spell.back)
		return
	}
	s.mu.Lock()
	p.lossy = true
	s.mu.Unlock()
	for _, op := range spell.ops {
		p.link.Next(op, spell.next...)
	}
	p.link.All(spell.fate, spell.ops...)
}

// heal puts a link in order. What was delayed is on its way still.
func (s *scene) heal(p *process) {
	s.note("link: process %d has a good link", p.number)
	s.mu.Lock()
	if quiet := time.Now().Add(p.lag); quiet.After(p.quiet) {
		p.quiet = quiet
	}
	if p.lossy {
		p.sound = p.quiet
	}
	p.rough, p.lossy, p.lag = false, false, 0
	s.mu.Unlock()
	p.link.Heal()
}

// calm says whether p's link has been in order since then. The caller holds the mutex.
func (s *scene) calm(p *process, since time.Time) bool { return !p.rough && !p.quiet.After(since) }

// slowAtMost says that p's link has only been slow since then, and answers within d. The caller holds the mutex.
func (s *scene) slowAtMost(d time.Duration, p *process, since time.Time) bool {
	return !p.lossy && !p.sound.After(since) && !slices.ContainsFunc(s.spells, func(x spell) bool {
		return x.process == p.number && x.there+x.back > d
	})
}

// linger is how long what was wrong with a link may be felt: in calls that wait for an answer
// still, in what was found out about it, and in commands that are sent again.
func (s *scene) linger() time.Duration { return 3*min(s.longest/3, bound) + 2*time.Second }

// closeEarly closes process 1 while it is at work.
func (s *scene) closeEarly() {
	time.Sleep(s.closes)
	patience := s.ttl / 2
	if s.patient {
		patience = time.Hour
	}
	if s.drains {
		s.drain(s.processes[1], patience)
	}
	s.close(s.processes[1], patience)
}

// stopping makes a call that ends a process, and writes down when the first one began.
func (s *scene) stopping(patience time.Duration, p *process, what string, call func(context.Context) error, began *time.Time) error {
	s.mu.Lock()
	if began.IsZero() {
		*began = time.Now()
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	now := time.Now()
	err := call(ctx)
	s.note("process %d: %s is %v", p.number, what, err)
	if took := time.Since(now); took > patience+slack {
		s.fault("process %d: %s took %v, with %v to go", p.number, what, took, patience)
	}
	return err
}

func (s *scene) drain(p *process, patience time.Duration) {
	if err := s.stopping(patience, p, "Drain", p.locks.Drain, &p.drain); err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.parts {
		if q.process() == p && q.Err() == nil {
			s.fault("process %d has drained, and %v stands", p.number, q.Lease)
		}
	}
}

func (s *scene) close(p *process, patience time.Duration) {
	began := time.Now()
	err := s.stopping(patience, p, "Close", p.locks.Close, &p.closing)
	time.Sleep(time.Nanosecond) // for those who were answered to say so
	s.mu.Lock()
	defer s.mu.Unlock()
	p.left = p.left || err != nil
	for _, r := range s.waiting() {
		if err == nil && r.process == p && !r.began.After(began) && r.job.way != campaign { // whose work may go on after a loss
			s.fault("%v is not answered, and Close is", r)
		}
	}
}

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
		s.mu.Lock()
		calm := s.calm(p, time.Now())
		s.mu.Unlock()
		if calm {
			p.link.Deliver() // replies to those who wait come to be held back later
		}
	}
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, p := range s.parts {
		h := p.holding
		if h.request.job.bound == maxHeld && h.outermost() && h.over.IsZero() && h.lease.Err() == nil && now.After(h.since.Add(s.maxHold()+slack)) {
			s.fault("%v stands since %v, and its MaxHold is %v", h.request, now.Sub(h.since), s.maxHold())
		}
		if s.look(p); p.Err() != nil && p.Context().Err() == nil {
			s.fault("%v: %v, and its context stands", h.request, p.Err())
		}
	}
	for _, x := range s.grants {
		since, ok := s.orphaned(x)
		if !ok {
			continue
		}
		r, patience := x.request, 2*s.bound(x.request.job)
		switch {
		case !s.calm(x.process, x.last) && !s.calm(x.process, since.Add(-patience)): // what should have given it back may have been lost
		case x.inLine && !s.calm(x.process, r.over.Add(-patience)): // and so may what should have left the queue before
		case x.last.Sub(r.over) > max(s.ttl, r.job.ttl): // a command that is executed so late may outlive its clean-up: docs/decisions/002-late-commands.md
		case now.Sub(since) > abandoned, now.Sub(since) > cleanedUp && !x.unheard && !r.local && s.calm(x.process, since.Add(-abandoned)): // as below
			s.fault("%v: %q is taken by what it has left behind, %v ago", r, x.claim.Name, now.Sub(since))
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		s.lineOf(name, now)
	}
}

// orphaned says since when nobody has had a token. The caller holds the mutex.
func (s *scene) orphaned(x *grant) (since time.Time, ok bool) {
	r := x.request
	if r == nil || r.over.IsZero() || x.process.left || x.handoff != "" {
		return since, false
	}
	verify := []driver.Claim{{Name: x.claim.Name, Token: x.claim.Token}}
	if !x.until.After(time.Now()) || s.store.Renew(context.Background(), verify)[0] != nil {
		return since, false
	}
	since = latest(x.last, r.over)
	for _, q := range s.waiting() { // whose token it is, if it is in the same line
		if q.process == x.process && q.wants(x.claim.Name) && q.job.line() == r.job.line() {
			return since, false
		}
	}
	for _, p := range s.parts {
		if p.Token() != x.claim.Token {
			continue
		}
		if h := p.holding; h.over.IsZero() || h.unsure || p.lost {
			return since, false
		}
		since = latest(since, p.holding.over)
	}
	return since, true
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// line is what the job is like, among those of its process that want the same name: the same lines have one token.
func (e *job) line() string {
	switch {
	case e.handoff != "":
		return e.handoff
	case e.kind == limited:
		return fmt.Sprint(e.kind, e.limit)
	case e.kind == reader:
		return e.kind
	default:
		return fmt.Sprint(e.local && e.way != campaign) // who campaigns never goes local
	}
}

// lineOf fails the test if somebody stands in line though nobody has asked for a while. The
// caller holds the mutex.
func (s *scene) lineOf(name string, now time.Time) {
	var last time.Time
	for _, r := range s.requests {
		if r.wants(name) && r.over.IsZero() {
			return
		}
		if r.wants(name) {
			last = latest(last, r.over)
		}
	}
	for _, p := range s.processes {
		bound := cleanedUp
		if !s.calm(p, last.Add(-abandoned)) { // a clean-up that was failing is tried again after a pause
			bound = abandoned
		}
		cut := !p.closing.IsZero() && !s.calm(p, p.closing) // what it could not give back stays for its time
		if now.Sub(last) <= bound || !s.calm(p, last) || cut {
			return
		}
	}
	info, _ := s.store.Inspect(context.Background(), name) // memory does not fail
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
		return r.wants(name) && !s.calm(r.process, came.Add(-1)) && came.Sub(r.over) > max(s.ttl, r.job.ttl)
	})
}

// nothingIsLeft is called when everybody has given back what they had.
func (s *scene) nothingIsLeft() {
	for _, p := range s.processes {
		s.heal(p)
	}
	time.Sleep(cleanedUp + slack)
	s.audit()
	time.Sleep(s.lifetime() + driver.PlaceLife(s.longest))
	synctest.Wait()
	for _, name := range []string{"a", "b", "c"} {
		info, err := s.store.Inspect(context.Background(), name)
		if err != nil || info.Held || slices.ContainsFunc(info.Line, func(w inspect.WaiterInfo) bool { return w.Alive }) {
			s.fault("%q is taken for ever: %+v, %v", name, info, err)
		}
		for i, p := range s.processes {
			c := driver.Claim{Name: name, Token: fmt.Sprint("auditor ", i), TTL: s.ttl}
			if _, err := p.fallback.Acquire(context.Background(), c); err != nil && !p.left {
				s.fault("process %d: %q is taken for ever: %v", i, name, err)
			}
			_ = p.fallback.Release(context.Background(), c)
		}
	}
	for _, p := range s.processes {
		if left := p.locks.Remains(); len(left) > 0 && !p.left {
			s.fault("process %d keeps %q", p.number, left)
		}
		s.close(p, time.Minute)
	}
	synctest.Wait()
	for _, p := range s.processes {
		if told := p.told.Load(); told != 0 && !p.left {
			s.fault("process %d: its observer has heard of %d leases more than have ended", p.number, told)
		}
	}
}
