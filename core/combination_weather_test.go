package core_test

import (
	"context"
	"slices"
	"time"
)

// weather does what the spells say, and looks for what was left behind while all is calm.
func (s *scene) weather() {
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
	s.note("weather: %+v", spell)
	s.mu.Lock()
	p.rough, p.lag = true, max(p.lag, spell.there+spell.back)
	s.mu.Unlock()
	if spell.there > 0 {
		p.link.Delay(spell.there, spell.back)
		return
	}
	for _, op := range spell.ops {
		p.link.Next(op, spell.next...)
	}
	p.link.All(spell.fate, spell.ops...)
}

// heal puts a link in order. What was delayed is on its way still.
func (s *scene) heal(p *process) {
	s.note("weather: process %d has a good link", p.number)
	s.mu.Lock()
	if quiet := time.Now().Add(p.lag); quiet.After(p.quiet) {
		p.quiet = quiet
	}
	p.rough, p.lag = false, 0
	s.mu.Unlock()
	p.link.Heal()
}

// calm says whether p's link has been in order since then. The caller holds the mutex.
func (s *scene) calm(p *process, since time.Time) bool { return !p.rough && !p.quiet.After(since) }

// linger is how long what was wrong with a link may be felt: in calls that wait for an answer
// still, in what was found out about it, and in commands that are sent again.
func (s *scene) linger() time.Duration { return 3*min(2*s.ttl/3, bound) + 2*time.Second }

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
