package redlock

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// The queue for a name is on every node. All nodes have the same order, since a place has one rank, which is
// larger than all ranks that a quorum knew when the place came. See docs/decisions/015-quorum-queue.md.

// first is a rank before all that stand in a queue: who has a quorum comes before them.
const first = 1

// spot is where a place of this process is.
type spot struct{ name, place string }

// standing is a place that has a rank.
type standing struct {
	rank uint64
	used time.Time
	seen []time.Time // for each node, when it said that it has the place; at first, when that got its rank
}

// queueing is a store whose nodes have queues.
type queueing struct{ *store }

// queues says whether a quorum of the nodes have queues.
func (s *store) queues() bool {
	n := 0
	for _, node := range s.nodes {
		if _, ok := node.(driver.Ranker); ok {
			n++
		}
	}
	return n >= s.quorum
}

var errNoLine = errors.New("redlock: this kind of node has no queue whose order can be set")

// Wait implements driver.Queuer. It waits at every node, and returns nil when a quorum says that it is the
// place's turn. If no quorum of the nodes can be asked, the place leaves the queue: others, who reach more of
// the nodes, must not wait for it. Nodes that are only too slow to answer before ctx ends have the place as it
// was. But it leaves once no quorum has answered, to this or to Acquire, for as long as a place lives.
func (s queueing) Wait(ctx context.Context, c driver.Claim) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	apart, stop := detached(ctx)
	defer stop()
	claim, err := s.lineUp(apart, c)
	if err != nil {
		return cmp.Or(driver.NotSent(ctx.Err()), err) // no node has been asked to line it up
	}
	said := s.hear(ctx, apart, stop, claim)
	if said.told+said.lined < s.quorum {
		if len(said.errs) > len(s.nodes)-s.quorum || s.faded(claim) {
			s.vacate(claim)
		}
		return noQuorum(said.error())
	}
	if said.told >= s.quorum {
		return nil
	}
	<-ctx.Done() // now, if it has not ended yet: both have one deadline, and two timers
	return ctx.Err()
}

// hearsay is what nodes have said of a place that waits.
type hearsay struct {
	told  int // that it is its turn
	lined int // that it stands in their queue
	slow  int // nothing, before ctx ended
	errs  []error
}

func (h *hearsay) error() error { return said(h.errs) }

// hear waits at all nodes, until a quorum says that it is the place's turn, or cannot be asked, or ctx ends. Then
// it stops them, and they have a moment to say whether the place is in their queue.
func (s *store) hear(ctx, apart context.Context, stop context.CancelFunc, claim driver.Claim) (h hearsay) {
	heard := make(chan error, len(s.nodes))
	for i := range s.nodes {
		s.errands.spawn(func() { heard <- s.waitAt(apart, i, claim) })
	}
	over := ctx.Done()
	var last <-chan time.Time
	for h.told < s.quorum && h.told+h.lined+h.slow+len(h.errs) < len(s.nodes) && len(h.errs) <= len(s.nodes)-s.quorum {
		select {
		case err := <-heard:
			switch ended := apart.Err(); {
			case err == nil:
				h.told++
			case err == ended: //nolint:errorlint // driver.Queuer: as it is
				h.lined++
			case ended != nil:
				h.slow++
			default:
				h.errs = append(h.errs, err)
			}
		case <-over:
			over, last = nil, time.After(lastWords)
			stop()
		case <-last:
			h.slow = len(s.nodes) - h.told - h.lined - len(h.errs)
		}
	}
	return h
}

// lastWords is how long, after the end of a context, nodes may take to say that the place is in their queue.
const lastWords = 40 * time.Millisecond

// detached ends when ctx does, but is not of it: calls to slow nodes outlast the call that they are made for.
func detached(ctx context.Context) (apart context.Context, stop context.CancelFunc) {
	apart, cancel := context.WithCancel(context.Background())
	if deadline, ok := ctx.Deadline(); ok {
		apart, cancel = context.WithDeadline(context.Background(), deadline)
	}
	unwatch := context.AfterFunc(ctx, cancel)
	return apart, func() { unwatch(); cancel() }
}

// waitAt waits in the queue of one node. The command that lines the place up may come after the one that left it.
// Then it is left again.
func (s *store) waitAt(ctx context.Context, i int, c driver.Claim) error {
	node, ok := s.nodes[i].(driver.Ranker)
	if !ok {
		return errNoLine
	}
	err := node.Wait(ctx, c)
	if err == nil || err == ctx.Err() { //nolint:errorlint // driver.Queuer: as it is
		s.see(c, i)
	}
	if s.ranked(c) == 0 {
		s.leaveAt(i, c) //nolint:contextcheck // it has to be left though ctx has ended
	}
	return err
}

// lineUp returns the claim that goes to the nodes. If its place is new, it asks them for ranks first. The
// place's own is above all of them, by less than the step between two, and by chance: then places that come
// at the same time have different ones.
func (s *store) lineUp(ctx context.Context, c driver.Claim) (driver.Claim, error) {
	claim := s.known(c).claim
	claim.Label, claim.TTL, claim.Place = c.Label, c.TTL, c.At()
	if claim.Rank = s.ranked(claim); claim.Rank > 0 {
		return claim, nil
	}
	all, err := ask(ctx, s, 0, func(ctx context.Context, node driver.Driver) (uint64, error) {
		if r, ok := node.(driver.Ranker); ok {
			return r.Rank(ctx, c.Name)
		}
		return 0, errNoLine
	})
	if err != nil {
		return claim, err
	}
	for _, a := range all {
		claim.Rank = max(claim.Rank, a.said)
	}
	claim.Rank += chance()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prunePlaces()
	now := time.Now()
	s.places[spot{claim.Name, claim.Place}] = &standing{rank: claim.Rank, used: now, seen: slices.Repeat([]time.Time{now}, len(s.nodes))}
	return claim, nil
}

func chance() uint64 { return rand.Uint64N(driver.RankStep) } //nolint:gosec // G404: a rank is no secret

// standing returns the claim with the place that it has in the queues, if any, and the place's rank.
func (s *store) standing(c driver.Claim) (driver.Claim, uint64) {
	at := c
	at.Place = c.At()
	if rank := s.ranked(at); rank > 0 {
		return at, rank
	}
	return c, 0
}

// ranked returns the rank of c's place, 0 if it has none.
func (s *store) ranked(c driver.Claim) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.places[spot{c.Name, c.Place}]
	if at == nil {
		return 0
	}
	at.used = time.Now()
	return at.rank
}

// part gives a place another chance against one of the same rank: each of them had some nodes.
func (s *store) part(c driver.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.places[spot{c.Name, c.Place}]; at != nil {
		at.rank += chance() - at.rank%driver.RankStep
	}
}

// see takes note that a node has a place, as it has just said.
func (s *store) see(c driver.Claim, node int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.places[spot{c.Name, c.Place}]; at != nil {
		at.seen[node] = time.Now()
	}
}

// faded says whether a place that stands in the queue has been seen at no quorum for as long as one lives.
func (s *store) faded(c driver.Claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.places[spot{c.Name, c.Place}]
	if at == nil {
		return false
	}
	alive := 0
	for _, seen := range at.seen {
		if time.Since(seen) <= driver.PlaceLife(c.TTL) {
			alive++
		}
	}
	return alive < s.quorum
}

// left takes note that a place is in no queue any more.
func (s *store) left(c driver.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.places, spot{c.Name, c.Place})
}

// prunePlaces throws out places that nobody has used for longer than any lives. The caller holds the mutex.
func (s *store) prunePlaces() {
	const longest = 10 * time.Second
	if len(s.places) < s.prunePlacesAt {
		return
	}
	for at, p := range s.places {
		if time.Since(p.used) > longest {
			delete(s.places, at)
		}
	}
	s.prunePlacesAt = max(minPrune, 2*len(s.places))
}

// vacate leaves a place at every node, in the background. If its caller goes on waiting, it comes to the end.
func (s *store) vacate(c driver.Claim) {
	s.left(c)
	for i := range s.nodes {
		s.errands.spawn(func() { s.leaveAt(i, c) })
	}
}

// leaveAt leaves a place at one node. If that fails, the place is dead soon.
func (s *store) leaveAt(i int, c driver.Claim) {
	ctx, cancel := context.WithTimeout(context.Background(), patience(context.Background()))
	defer cancel()
	_ = s.nodes[i].Release(ctx, driver.Claim{Name: c.Name, Token: newToken(), TTL: c.TTL, Place: c.Place})
}

// healAfter is how long a node that refused what a quorum has granted is given to hear of the last holder's
// release.
const healAfter = 10 * time.Millisecond

// complete acquires at the nodes that refused a ballot that was won: their last holder's release has reached a
// quorum, and not yet them.
func (s *store) complete(b *ballot, refused []int, votes <-chan vote, missing int) {
	for range missing {
		if v := <-votes; v.held() {
			refused = append(refused, v.node)
		}
	}
	if len(refused) == 0 {
		return
	}
	time.Sleep(healAfter)
	for _, i := range refused {
		s.heal(i, []*ballot{b})
	}
}
