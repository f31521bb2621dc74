package memlock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// entry is a claim in the queue of its name.
type entry struct {
	claim  driver.Claim // as its last look has left it
	rank   uint64       // the queue is sorted by it
	turn   bool         // it is only told: see ranked.Node
	came   time.Time
	looked time.Time
	dead   time.Time         // when it is dropped, unless it looks again
	told   chan driver.Grant // of the call of Wait that looked last; see tell
}

// tell tells a Wait under way what it was granted, or, by a Grant without a fence, to look. The channel
// is of size one. The caller has the Store's mutex, so nobody else sends.
func (e *entry) tell(g driver.Grant) {
	select {
	case <-e.told: // who looks finds what it has missed
	default:
	}
	e.told <- g
}

// Wait implements driver.Driver. It looks when it is told to, when the owner's time or the first one's
// life ends, and every [driver.Recheck].
func (s *Store) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.wait(ctx, ranked.Claim{Claim: c}, false)
}

// WaitRanked is Wait for a node of package redlock: it grants nothing.
func (s *Store) WaitRanked(ctx context.Context, c ranked.Claim) error {
	_, err := s.wait(ctx, c, true)
	return err
}

func (s *Store) wait(ctx context.Context, c ranked.Claim, turn bool) (driver.Grant, error) {
	told := make(chan driver.Grant, 1)
	var held *driver.Held
	for {
		if held != nil && ctx.Err() != nil {
			return driver.Grant{}, held
		}
		if err := s.reach(ctx); err != nil {
			if held != nil { // it is in the queue
				err = driver.UnknownOutcome(err)
			}
			return driver.Grant{}, err
		}
		g, again, err := s.look(c, told, turn)
		if lost := s.answer(ctx); lost != nil {
			return driver.Grant{}, lost
		}
		var refused bool
		if held, refused = err.(*driver.Held); !refused { //nolint:errorlint // our own, as it is
			return g, err
		}
		c.Tell(held)
		timer := time.NewTimer(again)
		select {
		case g = <-told:
		case <-timer.C:
		case <-ctx.Done():
			select { // it is better news than the end of ctx
			case g = <-told:
			default:
			}
		}
		timer.Stop()
		if g.Fence > 0 {
			return g, nil
		}
	}
}

// look asks for the name, as the first of the queue or else from its place in it, or, if turn is set, only whether that
// would be granted. After a refusal it says when to look again.
func (s *Store) look(c ranked.Claim, told chan driver.Grant, turn bool) (g driver.Grant, again time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r := s.open(c.Name, now)
	defer s.shut(c.Name, r)
	if r.holder(c.Token) == nil { // who owns the name is never queued
		r.stand(c, now, told, turn)
	}
	if err = s.refuse(r, c, now); err == nil && !turn {
		g = s.take(r, c, now)
	}
	switch err := err.(type) { //nolint:errorlint // our own, as they are
	case nil:
		g.Asked = now
	case *driver.Duplicate:
		r.leave(c.Token)
		s.serve(r, now)
	case *driver.Held:
		again = driver.Recheck(c.TTL)
		if err.Remaining > 0 {
			again = min(again, err.Remaining)
		} else if len(r.queue) > 0 {
			again = min(again, r.queue[0].dead.Sub(now))
		}
	}
	return g, again, err
}

// stand puts c at the end of the queue, or where its rank says, or keeps it alive where it stands.
func (r *record) stand(c ranked.Claim, now time.Time, told chan driver.Grant, turn bool) {
	var e *entry
	for _, there := range r.queue {
		if there.claim.Token == c.Token {
			e = there
		}
	}
	if e == nil {
		e = &entry{came: now, rank: r.behind(now)}
		r.queue = append(r.queue, e)
	}
	*e = entry{claim: c.Claim, rank: cmp.Or(c.Rank, e.rank), came: e.came, looked: now, dead: now.Add(driver.PlaceLife(c.TTL)), told: told, turn: turn}
	slices.SortStableFunc(r.queue, func(a, b *entry) int { return cmp.Compare(a.rank, b.rank) })
}

// comesBefore says whether e, the first of the queue, keeps c from the name.
func (e *entry) comesBefore(c ranked.Claim) bool {
	return e.claim.Token != c.Token && (c.Rank == 0 || c.Rank >= e.rank)
}

// Rank implements ranked.Node.
func (s *Store) Rank(ctx context.Context, name string) (uint64, error) {
	if err := s.reach(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r := s.open(name, now)
	defer s.shut(name, r)
	return r.behind(now), nil
}

// behind is a rank behind all that stand in the queue.
func (r *record) behind(now time.Time) uint64 {
	last := uint64(max(0, now.UnixMilli()))
	if n := len(r.queue); n > 0 {
		last = max(last, r.queue[n-1].rank/ranked.Step)
	}
	return (last + 1) * ranked.Step
}

// leave takes token out of the queue.
func (r *record) leave(token string) {
	r.queue = slices.DeleteFunc(r.queue, func(e *entry) bool { return e.claim.Token == token })
}

// serve gives the name to the first of the queue, if there is room for it, or tells it to look. An entry
// that has less than half of its life left is only told: its grant would be as short.
func (s *Store) serve(r *record, now time.Time) {
	if len(r.queue) == 0 || !r.admits(r.queue[0].claim) {
		return
	}
	e := r.queue[0]
	life := driver.PlaceLife(e.claim.TTL)
	var g driver.Grant
	if e.claim.Plain() && !e.turn && e.dead.Sub(now) >= life/2 {
		g = s.grant(r, e.claim, now)
		g.TTL, g.Asked = life, e.looked
		r.holder(e.claim.Token).expires = e.dead
	}
	e.tell(g)
}
