package core_test

import (
	"context"
	"slices"
	"time"
)

// change is one of the weather.
type change struct {
	at   time.Duration
	make func()
}

// weather does what the spells say, and looks for what was left behind while all is calm.
func (s *scene) weather() {
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
	s.note("weather: %v", spell)
	p.mu.Lock()
	p.rough, p.lag = true, max(p.lag, spell.there+spell.back)
	p.mu.Unlock()
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
	now := time.Now()
	p.mu.Lock()
	if quiet := now.Add(p.lag); quiet.After(p.quiet) {
		p.quiet = quiet
	}
	p.rough, p.lag = false, 0
	p.mu.Unlock()
	p.link.Heal()
}

// calm says whether p's link has been in order since then.
func (s *scene) calm(p *process, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.rough && !p.quiet.After(since)
}

// unheard says that the process was closed while something was wrong with its link: what it could not
// give back stays for its time.
func (s *scene) unheard(p *process) bool {
	p.mu.Lock()
	closing := p.closing
	p.mu.Unlock()
	return !closing.IsZero() && !s.calm(p, closing)
}

// linger is how long what was wrong with a link may be felt: in calls that wait for an answer
// still, in what was found out about it, and in commands that are sent again.
func (s *scene) linger() time.Duration { return 3*min(2*s.ttl/3, bound) + 2*time.Second }

// closeEarly closes process 1 while it is at work.
func (s *scene) closeEarly() {
	time.Sleep(s.closes)
	d := s.ttl / 2
	if s.patient {
		d = time.Hour
	}
	if s.drains {
		s.drain(s.processes[1], d)
	}
	s.close(s.processes[1], d)
}

func (s *scene) drain(p *process, patience time.Duration) {
	p.mu.Lock()
	p.drain = time.Now()
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := p.locks.Drain(ctx)
	s.note("process %d: Drain is %v", p.number, err)
	if err != nil {
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

// drained says when Drain was called.
func (p *process) drained() (at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drain, !p.drain.IsZero()
}

func (p *process) isDraining() bool {
	_, ok := p.drained()
	return ok
}

func (s *scene) close(p *process, patience time.Duration) {
	p.mu.Lock()
	if p.closing.IsZero() {
		p.closing = time.Now()
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	err := p.locks.Close(ctx)
	s.note("process %d: Close is %v", p.number, err)
	if took := time.Since(began); took > patience+slack {
		s.fault("process %d: Close took %v, with %v to go", p.number, took, patience)
	}
	time.Sleep(time.Nanosecond) // for those who were answered to say so
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		for _, r := range s.waiting() {
			if r.process == p && !r.began.After(began) && r.job.way != campaign { // whose work may go on after a loss
				s.fault("%v is not answered, and Close is", r)
			}
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
}

// closed says when Close was called.
func (p *process) closed() (at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing, !p.closing.IsZero()
}

func (p *process) isClosing() bool {
	_, ok := p.closed()
	return ok
}
