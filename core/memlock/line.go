package memlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// place is one that stands in the line for a name.
type place struct {
	id   string
	want driver.Claim
	came time.Time
	dead time.Time     // when it is dropped, unless it is heard of
	wake chan struct{} // of size one: it may be its turn
}

// Wait implements driver.Queuer.
func (s *Store) Wait(ctx context.Context, c driver.Claim) error {
	if s.faults.down.Load() {
		return errDown
	}
	for {
		wake, next := s.lineUp(c)
		if wake == nil {
			return ctx.Err()
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-wake:
			timer.Stop()
			return nil
		case <-timer.C: // who had the name, or stood before us, may be dead
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// lineUp puts c into line, and says when to look again; no channel means now.
func (s *Store) lineUp(c driver.Claim) (wake <-chan struct{}, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	l := s.live(c.Name, now)
	if l.ownedBy(c.Token) {
		return nil, now
	}
	p := s.stand(c, now)
	if l != nil && !l.admits(c) {
		return p.wake, l.frees(c)
	}
	first := s.line(c.Name, now)[0]
	if first == p {
		return nil, now
	}
	s.tellFirst(c.Name, now)
	return p.wake, first.dead
}

// stand lines c.Place up, or keeps it alive where it stands.
func (s *Store) stand(c driver.Claim, now time.Time) *place {
	dead := now.Add(driver.PlaceLife(c.TTL))
	for _, p := range s.line(c.Name, now) {
		if p.id == c.At() {
			p.dead = dead
			return p
		}
	}
	p := &place{c.At(), c, now, dead, make(chan struct{}, 1)}
	s.lines[c.Name] = append(s.lines[c.Name], p)
	return p
}

// line returns those who stand in line for name, without the dead.
func (s *Store) line(name string, now time.Time) []*place {
	s.keep(name, func(p *place) bool { return now.Before(p.dead) })
	return s.lines[name]
}

// leave gives a place up.
func (s *Store) leave(name, id string) {
	s.keep(name, func(p *place) bool { return p.id != id })
}

func (s *Store) keep(name string, stays func(*place) bool) {
	line, ok := s.lines[name]
	if !ok {
		return
	}
	kept := line[:0]
	for _, p := range line {
		if stays(p) {
			kept = append(kept, p)
		}
	}
	clear(line[len(kept):])
	s.lines[name] = kept
	if len(kept) == 0 {
		delete(s.lines, name)
	}
}

// ahead says whether another place than id comes first, and keeps id alive.
func (s *Store) ahead(c driver.Claim, now time.Time) bool {
	line := s.line(c.Name, now)
	for _, p := range line {
		if p.id == c.At() {
			p.dead = now.Add(driver.PlaceLife(c.TTL))
		}
	}
	return len(line) > 0 && line[0].id != c.At()
}

// others says whether somebody else stands in line.
func (s *Store) others(name, id string, now time.Time) bool {
	for _, p := range s.line(name, now) {
		if p.id != id {
			return true
		}
	}
	return false
}

// tellFirst notifies the first in line if there is room for it.
func (s *Store) tellFirst(name string, now time.Time) {
	line := s.line(name, now)
	if len(line) == 0 {
		return
	}
	if l := s.live(name, now); l == nil || l.admits(line[0].want) {
		line[0].tell()
	}
}

func (p *place) tell() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Yield implements driver.Yielder.
func (s *Store) Yield(ctx context.Context, old, next driver.Claim) (g driver.Grant, errNext, errOld error) {
	if err := s.reach(ctx); err != nil {
		return g, err, err
	}
	g, errNext, errOld = s.yield(old, next)
	if lost := s.answer(ctx); lost != nil {
		return driver.Grant{}, lost, lost
	}
	return g, errNext, errOld
}

func (s *Store) yield(old, next driver.Claim) (g driver.Grant, errNext, errOld error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	l := s.live(old.Name, now)
	if !l.ownedBy(old.Token) {
		return g, driver.ErrNotSent, driver.ErrNotOwner
	}
	delete(s.locks, old.Name)
	if s.others(next.Name, next.At(), now) {
		s.stand(next, now)
		s.tellFirst(next.Name, now)
		return g, &driver.Held{}, nil
	}
	return s.grant(next, now), nil, nil
}
