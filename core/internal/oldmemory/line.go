package memlock

import (
	"cmp"
	"context"
	"slices"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// place is one that stands in the line for a name.
type place struct {
	id   string
	rank uint64 // the line is sorted by it
	want driver.Claim
	came time.Time
	dead time.Time     // when it is dropped, unless it is heard of
	wake chan struct{} // of size one: it may be its turn

	offer     driver.Claim      // that may be granted; without a token if there is none
	told      chan driver.Grant // of size one, of the call that has made the offer
	withdrawn uint64            // offers up to this number count no more
}

// Wait implements driver.Queuer.
func (s *Store) Wait(ctx context.Context, c driver.Claim) error {
	c.Offer = 0
	_, _, err := s.Offer(ctx, c)
	return err
}

// Offer implements driver.Offerer.
func (s *Store) Offer(ctx context.Context, c driver.Claim) (g driver.Grant, granted bool, err error) {
	if s.faults.down.Load() {
		return g, false, errDown
	}
	told := make(chan driver.Grant, 1)
	for {
		wake, next := s.lineUp(c, told)
		if wake == nil {
			return g, false, ctx.Err()
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case g = <-told:
			timer.Stop()
			return g, true, nil
		case <-wake:
			timer.Stop()
			return g, false, nil
		case <-timer.C: // who had the name, or stood before us, may be dead
		case <-ctx.Done():
			timer.Stop()
			return g, false, ctx.Err()
		}
	}
}

// lineUp puts c into line, with its offer, and says when to look again; no channel means now.
func (s *Store) lineUp(c driver.Claim, told chan driver.Grant) (wake <-chan struct{}, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	l := s.live(c.Name, now)
	if l.ownedBy(c.Token) {
		return nil, now
	}
	p := s.stand(c, now)
	p.offers(c, told)
	if l != nil && !l.admits(c) {
		return p.wake, l.frees(c)
	}
	first := s.line(c.Name, now)[0]
	if first == p {
		return nil, now
	}
	s.serve(c.Name, now)
	return p.wake, first.dead
}

// offers takes c's offer, unless a later one has been made or withdrawn.
func (p *place) offers(c driver.Claim, told chan driver.Grant) {
	if c.Offer > max(p.offer.Offer, p.withdrawn) {
		p.offer, p.told = c, told
	}
}

// withdraw ends the offers at c.Place up to c.Offer.
func (s *Store) withdraw(c driver.Claim, now time.Time) {
	for _, p := range s.line(c.Name, now) {
		if p.id == c.Place {
			p.withdraw(c.Offer)
		}
	}
}

// withdraw ends the offers up to the given number.
func (p *place) withdraw(number uint64) {
	p.withdrawn = max(p.withdrawn, number)
	if p.offer.Offer <= number {
		p.offer, p.told = driver.Claim{}, nil
	}
}

// stand lines c.Place up, or keeps it alive where it stands.
func (s *Store) stand(c driver.Claim, now time.Time) *place {
	var p *place
	for _, there := range s.line(c.Name, now) {
		if there.id == c.At() {
			p = there
			p.want.Label = c.Label // another caller of the process may go on at this place
		}
	}
	if p == nil {
		p = &place{id: c.At(), rank: s.behind(c.Name, now), want: c, came: now, wake: make(chan struct{}, 1)}
		s.lines[c.Name] = append(s.lines[c.Name], p)
	}
	p.lives(c, now)
	if c.Rank > 0 {
		p.rank = c.Rank
		slices.SortStableFunc(s.lines[c.Name], func(a, b *place) int { return cmp.Compare(a.rank, b.rank) })
	}
	return p
}

// behind is a rank behind all that stand in line for name.
func (s *Store) behind(name string, now time.Time) uint64 {
	last := uint64(max(0, now.UnixMilli()))
	if line := s.lines[name]; len(line) > 0 {
		last = max(last, line[len(line)-1].rank/driver.RankStep)
	}
	return (last + 1) * driver.RankStep
}

// Rank implements driver.Ranker.
func (s *Store) Rank(ctx context.Context, name string) (uint64, error) {
	if err := s.reach(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behind(name, time.Now()), nil
}

// lives keeps p alive. It never shortens its life: an offer relies on that.
func (p *place) lives(c driver.Claim, now time.Time) {
	if dead := now.Add(driver.PlaceLife(c.TTL)); dead.After(p.dead) {
		p.dead = dead
	}
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
			p.lives(c, now)
		}
	}
	return len(line) > 0 && line[0].id != c.At() && (c.Rank == 0 || c.Rank > line[0].rank)
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

// serve notifies the first in line if there is room for it, or grants what it offers.
func (s *Store) serve(name string, now time.Time) {
	line := s.line(name, now)
	if len(line) == 0 {
		return
	}
	p, l := line[0], s.live(name, now)
	switch {
	case l == nil && p.offer.Token != "" && p.dead.Sub(now) >= driver.PlaceLife(p.offer.TTL)/2:
		told, dead := p.told, p.dead
		g := s.grant(p.offer, now)
		s.locks[name].expires = dead
		select {
		case told <- g:
		default: // an earlier grant has not been read yet; the next Acquire finds this one
		}
	case l == nil || l.admits(p.want):
		p.tell()
	}
}

func (p *place) tell() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
