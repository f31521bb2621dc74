package redlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Acquire implements driver.Driver. It returns as soon as a quorum has granted the name for the whole
// TTL. It also returns when no quorum is possible any more and a node has said who holds the name.
// Requests that are still under way then go on in the background: later grants count too, or are
// given back.
func (s *store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return driver.Grant{}, err
	}
	b := s.open(c)
	votes := make(chan vote, len(s.nodes))
	c, rank := s.standing(c)
	claim := b.claim
	claim.Label, claim.TTL = c.Label, c.TTL // the same token may ask for something else
	claim.Place, claim.Rank = c.Place, rank
	began := time.Now() // before any request: no node's TTL began earlier
	stop := s.fan(ctx, func(ctx context.Context, i int) {
		g, err := b.fly(ctx, i, claim)
		v := vote{i, g, err}
		if rank > 0 && (err == nil || v.held()) {
			s.see(claim, i) // who asks keeps the place alive
		}
		votes <- v
	})
	t := s.count(ctx, votes, c.TTL)
	if !s.fenced {
		t.fence = 0
	}
	var ttl time.Duration
	var rest <-chan vote = votes
	if len(t.ttls) >= s.quorum {
		ttl = t.validity(s.quorum)
	}
	if ttl > 0 && s.fenced {
		t, rest = s.raise(ctx, b, c, b.largest(t.fence))
	}
	if len(t.ttls) >= s.quorum {
		if fence, ok := b.won(ttl, began, c.Place, t.fence); ok {
			if c.Place != "" {
				s.left(c)
				s.errands.spawn(func() { s.complete(b, t.refused, rest, len(s.nodes)-t.answers()) })
			}
			return driver.Grant{TTL: ttl, Fence: fence}, nil
		}
		t.errs = append(t.errs, errOver)
	}
	if ctx.Err() != nil {
		stop()
	}
	if len(t.ttls) > 0 {
		s.part(c)
	}
	if s.faded(c) { // whoever polls may not wait any more
		s.vacate(c)
	}
	return driver.Grant{}, t.refusal(s, s.giveBack(ctx, c, b, t.late))
}

type vote struct {
	node  int
	grant driver.Grant
	err   error
}

func (v vote) held() bool {
	_, held := errors.AsType[*driver.Held](v.err)
	return held
}

// tally is what the nodes have answered to an Acquire.
type tally struct {
	ttls  []time.Duration // of those that granted
	helds []*driver.Held
	errs  []error

	refused []int // the nodes that said so

	fence uint64 // the largest of those that granted; stays 0 without WithFence
	late  bool   // nodes whose answers are missing are not waited for any more
}

func (t *tally) answers() int { return len(t.ttls) + len(t.helds) + len(t.errs) }

func (t *tally) add(v vote, ttl time.Duration) {
	held, ok := errors.AsType[*driver.Held](v.err)
	t.fence = max(t.fence, v.grant.Fence)
	switch {
	case v.err == nil && v.grant.TTL > 0:
		t.ttls = append(t.ttls, min(ttl, v.grant.TTL))
	case v.err == nil:
		t.ttls = append(t.ttls, ttl)
	case ok:
		t.helds, t.refused = append(t.helds, held), append(t.refused, v.node)
	default:
		t.errs = append(t.errs, v.err)
	}
}

// How long a node may take when a quorum of the others has answered: when they have granted or refused, or so many have
// failed that no quorum is possible; and when some have failed, which takes no time and says nothing about how far
// away the rest is. Beyond that, and four times what the others took, it is not waited for: its answer is dealt
// with when it comes.
const (
	leastWait = 100 * time.Millisecond
	farWait   = 500 * time.Millisecond
)

// mayTake is how long to wait for further answers at least.
func (t *tally) mayTake(nodes, quorum int) time.Duration {
	switch {
	case len(t.ttls)+len(t.helds) >= quorum, len(t.errs) > nodes-quorum:
		return leastWait
	case t.answers() >= quorum:
		return farWait
	default:
		return maxBound
	}
}

// count takes answers until they decide, or those that are missing are not worth the wait.
func (s *store) count(ctx context.Context, votes <-chan vote, ttl time.Duration) (t tally) {
	began := time.Now()
	timer := time.NewTimer(maxBound)
	defer timer.Stop()
	heard, wait := make([]bool, len(s.nodes)), maxBound
	for {
		missing := len(s.nodes) - t.answers()
		switch {
		case len(t.ttls) >= s.quorum && t.validity(s.quorum) == ttl, missing == 0,
			len(t.helds) > 0 && len(t.ttls)+missing < s.quorum:
			return t
		}
		if least := t.mayTake(len(s.nodes), s.quorum); least < wait {
			wait = least
			timer.Reset(max(wait, 4*time.Since(began)))
		}
		select {
		case v := <-votes:
			heard[v.node] = true
			if v.err != nil && !v.held() {
				v.err = s.at(v.node, v.err)
			}
			t.add(v, ttl)
		case <-timer.C:
			t.late, t.errs = true, append(t.errs, s.unheard(heard, errNoAnswer))
			return t
		case <-ctx.Done():
			t.late, t.errs = true, append(t.errs, s.unheard(heard, ctx.Err()))
			return t
		}
	}
}

// validity is the longest for which a quorum of those that granted stands.
func (t *tally) validity(quorum int) time.Duration {
	slices.SortFunc(t.ttls, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	return t.ttls[quorum-1]
}

// largest returns the largest of a fence and of the one that the ballot has: another quorum, asked again, may know of
// smaller ones only.
func (b *ballot) largest(fence uint64) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.fence, fence)
}

// won takes note of a grant, unless the ballot was ended while its votes were counted. Its fence is the largest of
// all calls.
func (b *ballot) won(ttl time.Duration, began time.Time, place string, fence uint64) (largest uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, false
	}
	b.calls--
	b.granted, b.place, b.fence = true, place, max(b.fence, fence)
	b.ttl, b.until = ttl, began.Add(ttl)
	return b.fence, true
}

// remains is what is left of a ballot that was not won.
type remains uint8

const (
	nothing   remains = iota // and nothing will be
	something                // it is being dealt with
	owned                    // all: it was won before
)

// giveBack ends a ballot that was not won. It waits for the nodes that have granted, since the
// next attempt would find itself there. Nodes whose answers are late are asked at once, and
// again when they have answered. A ballot that was won before, or is counted by another call,
// is left alone.
func (s *store) giveBack(ctx context.Context, c driver.Claim, b *ballot, late bool) remains {
	b.mu.Lock()
	b.calls--
	if b.granted && b.stands() {
		b.mu.Unlock()
		return owned
	}
	if b.calls > 0 {
		b.mu.Unlock()
		return something
	}
	b.end(func(seat *seat) bool { return seat.taken() || late && seat.flying > 0 })
	b.mu.Unlock()
	s.forget(c, b)
	b.await(ctx, func() bool {
		for i := range b.seats {
			if seat := &b.seats[i]; seat.ttl > 0 && seat.left == unknown && !seat.tried {
				return false
			}
		}
		return true
	})
	return b.remains()
}

func (b *ballot) remains() remains {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.seats {
		if seat := &b.seats[i]; seat.flying > 0 || seat.freeing || !seat.stray.IsZero() || seat.ttl > 0 && seat.left == unknown {
			return something
		}
	}
	return nothing
}

// refusal is the error for an attempt without a quorum: held if any node says so, unless it
// is ours and we were only asking again, and else what the others said.
func (t *tally) refusal(s *store, left remains) error {
	if len(t.helds) > 0 && left != owned {
		return t.held(s.quorum)
	}
	err := noQuorum(said(t.errs))
	if left != nothing {
		return err
	}
	if t.forbidden() > len(s.nodes)-s.quorum {
		err = said(t.errs)
	}
	return driver.NotSent(err)
}

// forbidden is how many nodes will say the same until somebody mends them.
func (t *tally) forbidden() int {
	n := 0
	for _, err := range t.errs {
		if errors.Is(err, driver.ErrRefused) {
			n++
		}
	}
	return n
}

// held says who is in the way, and when enough of the nodes come free at the latest. It
// may well be earlier.
func (t *tally) held(quorum int) *driver.Held {
	slices.SortFunc(t.helds, func(a, b *driver.Held) int { return cmp.Compare(a.Remaining, b.Remaining) })
	last := t.helds[min(max(quorum-len(t.ttls), 1), len(t.helds))-1]
	h := &driver.Held{Label: last.Label, Remaining: last.Remaining}
	if t.helds[0].Remaining <= 0 { // one of them does not say
		h.Remaining = 0
	}
	return h
}
