package redlock

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// maxBound is core's on one attempt. The node that is slowest gets no more than three quarters
// of it, or of what is left of a call's time: an answer without it has to be in time.
const maxBound = 2 * time.Second

func patience(ctx context.Context) time.Duration {
	left := maxBound
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	return left * 3 / 4
}

// fan runs f for every node at once. The context it gets is not the caller's, which it
// outlives, so that a call that has its quorum need not wait for those who are slower; stop
// ends it.
func (s *Store) fan(ctx context.Context, f func(ctx context.Context, i int)) (stop context.CancelFunc) {
	ctx, stop = context.WithTimeout(context.Background(), patience(ctx)) //nolint:contextcheck // see above
	var under atomic.Int32
	under.Store(int32(len(s.nodes))) //nolint:gosec // G115: a few
	for i := range s.nodes {
		s.tasks.Go(func() {
			f(ctx, i)
			if under.Add(-1) == 0 {
				stop()
			}
		})
	}
	return stop
}

// Acquire implements driver.Driver. It returns as soon as a quorum has granted the name for the whole
// TTL. It also returns when no quorum is possible any more and a node has said who holds the name.
// Requests that are still under way then go on in the background: later grants count too, or are
// given back.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return driver.Grant{}, err
	}
	for began := time.Now(); ; {
		v := s.open(c, 0)
		g, inWay, err := s.acquire(ctx, v, c)
		if len(inWay) == 0 || !v.outlasts(ctx, inWay, began.Add(maxBound)) {
			return g, err
		}
	}
}

// acquire makes one attempt. If it has failed because earlier attempts of this process are still at some nodes, inWay are
// these nodes.
func (s *Store) acquire(ctx context.Context, v *vote, c driver.Claim) (g driver.Grant, inWay []int, err error) {
	t, late := s.attempt(ctx, v, c, ranked.Claim{Rank: v.rank})
	if granted, _, _ := t.counts(); granted >= s.quorum {
		if g, t, late = s.win(ctx, v, c, t); t == nil {
			return g, nil, nil
		}
	}
	return s.lose(ctx, v, c, t, late)
}

// outlasts waits until nothing of an attempt of this process before v is at the given nodes, and says whether that has
// come before the bound and the end of ctx.
func (v *vote) outlasts(ctx context.Context, nodes []int, bound time.Time) bool {
	const look = 5 * time.Millisecond
	for ctx.Err() == nil && time.Now().Before(bound) {
		if !slices.ContainsFunc(nodes, func(i int) bool { return v.store.leftAt(i, v) }) {
			return true
		}
		timer := time.NewTimer(look)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return false
}

// attempt asks every node once, in the way of how. late says that nodes whose answers are missing were not waited for.
func (s *Store) attempt(ctx context.Context, v *vote, c driver.Claim, how ranked.Claim) (t *tally, late bool) {
	how.Claim = v.at(c)
	certain := v.launch(c.TTL)
	t = s.newTally(c)
	answers := make(chan reply, len(s.nodes))
	stop := s.fan(ctx, func(ctx context.Context, i int) {
		a := reply{node: i, own: s.leftAt(i, v)}
		a.grant, a.err = v.fly(i, func() (driver.Grant, error) { return s.acquireAt(ctx, i, how) })
		a.own = a.own || s.leftAt(i, v) // as it asked, or since then
		if a.held() != nil {
			v.refusedAt(i)
		}
		if certain[i] < c.TTL {
			a.grant.TTL = min(cmp.Or(a.grant.TTL, certain[i]), certain[i])
		}
		answers <- a
	})
	late = s.count(ctx, t, answers)
	if ctx.Err() != nil {
		stop()
	}
	return t, late
}

func (s *Store) acquireAt(ctx context.Context, i int, c ranked.Claim) (driver.Grant, error) {
	if r, ok := s.nodes[i].(ranked.Node); ok {
		return r.AcquireRanked(ctx, c)
	}
	return s.nodes[i].Acquire(ctx, c.Claim)
}

// win makes a quorum's grant that of the vote. Otherwise it returns what the nodes have answered to the last step.
func (s *Store) win(ctx context.Context, v *vote, c driver.Claim, t *tally) (g driver.Grant, lost *tally, late bool) {
	g = t.grant()
	if g.TTL > 0 && s.fenced {
		g.Fence = v.largest(g.Fence)
		t, late = s.raise(ctx, v, c, g.Fence)
		if granted, _, _ := t.counts(); granted < s.quorum {
			return driver.Grant{}, t, late
		}
	}
	if !s.fenced {
		g.Fence = 0
	}
	if !v.won(&g) { // it was ended while its answers were counted
		return driver.Grant{}, t, late
	}
	s.complete(v)
	return g, nil, false
}

// lose gives back an attempt without a quorum. The error says that the name is held if a node says so, unless it is ours
// and we were only asking again, or may be held by what is left of our earlier attempts. Otherwise it has what the
// others said. inWay are the nodes of those attempts, if there may be a quorum without them.
func (s *Store) lose(ctx context.Context, v *vote, c driver.Claim, t *tally, late bool) (g driver.Grant, inWay []int, err error) {
	left := s.giveBack(ctx, c, v, late)
	some, decisive := t.others()
	if left != owned && !decisive {
		for i, a := range t.answers {
			if a.own && a.held() != nil {
				inWay = append(inWay, i)
			}
		}
	}
	if some && left != owned {
		return g, inWay, t.held()
	}
	return g, inWay, t.failure(left == nothing)
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
func (t *tally) mayTake() time.Duration {
	nodes, quorum := len(t.answers), t.store.quorum
	granted, held, failed := t.counts()
	switch {
	case granted+held >= quorum, failed > nodes-quorum:
		return leastWait
	case granted+held+failed >= quorum:
		return farWait
	default:
		return maxBound
	}
}

// count takes answers until they decide, or those that are missing are not worth the wait: then they count as failed.
func (s *Store) count(ctx context.Context, t *tally, answers <-chan reply) (late bool) {
	timer := time.NewTimer(maxBound)
	defer timer.Stop()
	wait := maxBound
	for {
		granted, _, _ := t.counts()
		_, refused := t.others()
		if t.answered() == len(s.nodes) || refused || granted >= s.quorum && t.grant().TTL == t.claim.TTL {
			return false
		}
		if least := t.mayTake(); least < wait {
			wait = least
			timer.Reset(max(wait, 4*time.Since(t.began)))
		}
		select {
		case a := <-answers:
			t.add(a)
		case <-timer.C:
			t.close(errNoAnswer)
			return true
		case <-ctx.Done():
			t.close(ctx.Err())
			return true
		}
	}
}
