package redlock

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// The queue for a name is on every node. All nodes have the same order, since an entry has one rank, which is
// larger than all ranks that a quorum knew when the entry came. See docs/decisions/014-quorum.md.

// firstRest is the first one after an attempt that was refused though it was its turn.
const firstRest = 25 * time.Millisecond

// lastWords is how long, after the end of a context, nodes may take to say that the entry is in their queue.
const lastWords = 40 * time.Millisecond

// Wait implements driver.Driver. It waits at every node, and asks for the name when a quorum has told it that it is
// the first. If no quorum of the nodes can be asked, the entry leaves the queues: others, who reach more of the nodes,
// must not wait for it. Nodes that are only too slow to answer before ctx ends have the entry as it was. But it leaves
// once no quorum has answered for as long as an entry lives.
func (s *Store) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return driver.Grant{}, err
	}
	if s.ranked == nil {
		return driver.Poll(ctx, c, s.Acquire)
	}
	rank, granted, err := s.rank(ctx, c)
	switch {
	case err != nil: // no node has been asked to queue it
		return driver.Grant{}, err
	case granted:
		return s.Acquire(ctx, c)
	}
	for pause := firstRest; ; pause = min(2*pause, driver.Recheck(c.TTL)) {
		if err := s.stand(ctx, c, rank); err != nil {
			return driver.Grant{}, err
		}
		asked := time.Now()
		g, err := s.Acquire(ctx, c)
		held, refused := errors.AsType[*driver.Held](err)
		switch {
		case err == nil:
			g.Asked = cmp.Or(g.Asked, asked)
			return g, nil
		case !refused:
			return driver.Grant{}, queued(err)
		}
		c.Tell(held)
		timer := time.NewTimer(pause/2 + rand.N(pause/2)) //nolint:gosec // G404: a pause is no secret
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return driver.Grant{}, held
		}
	}
}

// queued is err, of a call whose entry is in the queues.
func queued(err error) error {
	unknown := driver.UnknownOutcome(err)
	if errors.Is(err, driver.ErrRefused) {
		return driver.Refused(unknown)
	}
	return unknown
}

// rank returns the rank of c's entry, and whether c has been granted the name. If it has no entry yet, that asks the
// nodes for ranks. Its own is above all of them, by less than the step between two, and by chance: then entries that
// come at the same time have different ones.
func (s *Store) rank(ctx context.Context, c driver.Claim) (rank uint64, granted bool, err error) {
	v := s.known(c)
	v.mu.Lock()
	rank, granted = v.rank, v.granted && v.stands()
	v.mu.Unlock()
	if rank > 0 || granted {
		return rank, granted, nil
	}
	all, err := ask(ctx, s, 0, func(ctx context.Context, node driver.Driver) (uint64, error) {
		return node.(ranked.Node).Rank(ctx, c.Name) //nolint:forcetypeassert // all are
	})
	if err != nil {
		return 0, false, driver.NotSent(err)
	}
	for _, a := range all {
		rank = max(rank, a.said)
	}
	return rank + chance(), false, nil
}

func chance() uint64 { return rand.Uint64N(ranked.Step) } //nolint:gosec // G404: a rank is no secret

// errTurn stands for the answer of a node that would grant the name.
var errTurn = new(driver.Held)

// stand waits at all nodes, until a quorum says that it is the entry's turn, or cannot be asked, or ctx ends.
func (s *Store) stand(ctx context.Context, c driver.Claim, rank uint64) error {
	v := s.open(c, rank)
	apart, stop := v.detached(ctx)
	defer stop()
	said := make(chan reply, 4*len(s.nodes)) // what a node says before it has ended is told as long as there is room
	for i, node := range s.ranked {
		at := ranked.Claim{Claim: v.at(c), Rank: v.rank}
		at.Heard = func(h *driver.Held) {
			if len(said) < 2*len(s.nodes) {
				said <- reply{node: i, err: h}
			}
		}
		s.tasks.Go(func() {
			said <- reply{node: i, err: v.waits(i, func() error { return node.WaitRanked(apart, at) }), last: true}
		})
	}
	t := s.newTally(c)
	if s.listen(ctx, stop, t, said) {
		v.done()
		return nil
	}
	_, _, failed := t.counts()
	if failed > len(s.nodes)-s.quorum || v.unheard(t, driver.PlaceLife(c.TTL)) {
		s.leaveQueues(c, v)
	} else {
		v.done()
	}
	t.close(errNoAnswer)
	if failed <= len(s.nodes)-s.quorum && t.refused() {
		return t.held()
	}
	return t.unsaid()
}

// listen takes answers until they decide, and says whether it is the entry's turn. Once ctx has ended it stops the
// waits, and they have a moment to say whether the entry is in their queues.
func (s *Store) listen(ctx context.Context, stop func(), t *tally, said <-chan reply) bool {
	over := ctx.Done()
	var last <-chan time.Time
	for turns, waiting := 0, len(s.nodes); ; {
		if _, _, failed := t.counts(); failed > len(s.nodes)-s.quorum {
			return false
		}
		if waiting == 0 {
			<-ctx.Done() // now, if it has not ended yet: both have one deadline, and two timers
			return false
		}
		select {
		case a := <-said:
			if a.last {
				waiting--
			}
			if a.err == error(errTurn) { //nolint:errorlint // our own, as it is
				turns++
			}
			if turns >= s.quorum {
				return true
			}
			t.hear(a, past(ctx))
		case <-over:
			over, last = nil, time.After(lastWords)
			stop()
		case <-last:
			for i, a := range t.answers {
				if !a.last {
					t.answers[i] = reply{}
				}
			}
			return false
		}
	}
}

// hear takes what a node says while it waits, or, last, as it ends. A failure once ctx is over says nothing.
func (t *tally) hear(a reply, over bool) {
	switch {
	case t.answers[a.node].last: // what it has said before comes late
		return
	case a.held() == nil && over:
		t.answers[a.node] = reply{last: true}
	default:
		t.add(a)
	}
	if t.refused() {
		t.claim.Tell(t.held())
	}
}

// past says whether ctx has ended. A node may say so before ctx does.
func past(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) <= 0
}

// unsaid is the error of a wait that no quorum has answered.
func (t *tally) unsaid() error {
	errs := t.errs()
	sent := slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, driver.ErrNotSent) })
	return t.failure(!sent && len(errs) == len(t.answers))
}

// A node that refused what a quorum has granted is asked again after healAfter, and again after five times as long each, so many
// times: it may not have heard of the last holder's release yet.
const (
	healAfter = 10 * time.Millisecond
	healTries = 3
)

// complete acquires a vote that was won at the nodes that have refused it, and, if it has stood in queues, at all that have not
// granted it: their last holder's release has reached a quorum, and not yet them.
func (s *Store) complete(v *vote) {
	for i := range s.nodes {
		if v.misses(i) {
			s.healSoon(v, i)
		}
	}
}

func (s *Store) healSoon(v *vote, node int) {
	s.tasks.Go(func() {
		pause := healAfter
		for range healTries {
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
				pause *= 5
			case <-v.queued.Done(): // it is over
				timer.Stop()
				return
			}
			if !v.misses(node) || driver.Explain(s.heal(node, []*vote{v})).Kind != driver.HeldBy {
				return
			}
		}
	})
}
