package redlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Acquire implements driver.Driver. It returns as soon as a quorum has granted the name for the whole
// TTL. It also returns when no quorum is possible any more and a node has said who holds the name.
// Requests that are still under way then go on in the background: later grants count too, or are
// given back.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return driver.Grant{}, err
	}
	b := s.open(c)
	votes := make(chan vote, len(s.nodes))
	began := time.Now() // before any request: no node's TTL began earlier
	stop := s.fan(ctx, func(ctx context.Context, i int) {
		g, err := b.acquire(ctx, i)
		votes <- vote{g, err}
	})
	t := s.count(ctx, votes, c.TTL)
	if len(t.ttls) >= s.quorum {
		ttl := t.validity(s.quorum)
		if b.won(ttl, began) {
			return driver.Grant{TTL: ttl}, nil
		}
		t.errs = append(t.errs, errOver)
	}
	if ctx.Err() != nil {
		stop()
	}
	return driver.Grant{}, t.refusal(s.quorum, s.giveBack(ctx, c, b, t.late))
}

type vote struct {
	grant driver.Grant
	err   error
}

// tally is what the nodes have answered to an Acquire.
type tally struct {
	ttls  []time.Duration // of those that granted
	helds []*driver.Held
	errs  []error
	late  bool // nodes whose answers are missing are not waited for any more
}

func (t *tally) answers() int { return len(t.ttls) + len(t.helds) + len(t.errs) }

func (t *tally) add(v vote, ttl time.Duration) {
	held, ok := errors.AsType[*driver.Held](v.err)
	switch {
	case v.err == nil && v.grant.TTL > 0:
		t.ttls = append(t.ttls, min(ttl, v.grant.TTL))
	case v.err == nil:
		t.ttls = append(t.ttls, ttl)
	case ok:
		t.helds = append(t.helds, held)
	default:
		t.errs = append(t.errs, v.err)
	}
}

// leastWait is how long a node may take when the others have answered. Beyond that, and four
// times what a quorum of them took, it is not waited for: its answer is dealt with when it
// comes.
const leastWait = 100 * time.Millisecond

// count takes answers until they decide, or those that are missing are not worth the wait.
func (s *Store) count(ctx context.Context, votes <-chan vote, ttl time.Duration) (t tally) {
	began := time.Now()
	timer := time.NewTimer(maxBound)
	defer timer.Stop()
	for {
		missing := len(s.nodes) - t.answers()
		switch {
		case len(t.ttls) >= s.quorum && t.validity(s.quorum) == ttl, missing == 0,
			len(t.helds) > 0 && len(t.ttls)+missing < s.quorum:
			return t
		case t.answers() == s.quorum:
			timer.Reset(max(leastWait, 4*time.Since(began)))
		}
		select {
		case v := <-votes:
			t.add(v, ttl)
		case <-timer.C:
			t.late, t.errs = true, append(t.errs, errNoAnswer)
			return t
		case <-ctx.Done():
			t.late, t.errs = true, append(t.errs, ctx.Err())
			return t
		}
	}
}

// validity is the longest for which a quorum of those that granted stands.
func (t *tally) validity(quorum int) time.Duration {
	slices.SortFunc(t.ttls, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	return t.ttls[quorum-1]
}

// won takes note of a grant, unless the ballot was ended while its votes were counted.
func (b *ballot) won(ttl time.Duration, began time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return false
	}
	b.calls--
	b.granted = true
	b.ttl, b.until = ttl, began.Add(ttl)
	return true
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
func (s *Store) giveBack(ctx context.Context, c driver.Claim, b *ballot, late bool) remains {
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
		if seat := &b.seats[i]; seat.flying > 0 || !seat.stray.IsZero() || seat.ttl > 0 && seat.left == unknown {
			return something
		}
	}
	return nothing
}

// refusal is the error for an attempt without a quorum: held if any node says so, unless it
// is ours and we were only asking again, and else what the others said.
func (t *tally) refusal(quorum int, left remains) error {
	if len(t.helds) > 0 && left != owned {
		return t.held(quorum)
	}
	err := said(t.errs)
	if left == nothing {
		return driver.NotSent(err)
	}
	return noQuorum(err)
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
