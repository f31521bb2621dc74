package redlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// Renew implements driver.Driver. A node counts for a claim only if it has renewed it itself.
// Where a quorum has, the claim is acquired again at nodes that have lost it.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	if len(claims) == 0 {
		return nil
	}
	r := s.newRound(claims)
	stop := s.fan(ctx, func(ctx context.Context, i int) {
		r.take(i, s.nodes[i].Renew(ctx, r.claims))
	})
	select {
	case <-r.decided:
	case <-ctx.Done():
		stop()
	}
	return r.verdicts()
}

// round is one Renew.
type round struct {
	store  *Store
	claims []driver.Claim // with the tokens that the nodes know
	began  time.Time

	mu      sync.Mutex // protects the fields below
	polls   []poll     // one for each claim
	heard   int        // nodes
	open    int        // claims that are not decided
	over    bool
	decided chan struct{} // closed when it is over
}

// poll is what the nodes have answered to the renewal of one claim.
type poll struct {
	vote    *vote
	ours    int             // nodes that have renewed it
	gone    int             // nodes that said that it is not ours
	certain []time.Duration // for how long each node stands that renews it
	lost    []int           // nodes at which to acquire it again, once a quorum has it
	unsure  []int           // nodes that have it, and have to say for how long
	errs    []error
}

func (s *Store) newRound(claims []driver.Claim) *round {
	r := &round{
		store: s, began: time.Now(), open: len(claims), decided: make(chan struct{}),
		claims: make([]driver.Claim, len(claims)), polls: make([]poll, len(claims)),
	}
	for j, c := range claims {
		v := s.known(c)
		r.polls[j].vote = v
		r.claims[j] = v.at(c)
		if c.TTL > 0 {
			r.polls[j].certain = v.renews(c.TTL)
		}
	}
	return r
}

// take counts the answers of node i.
func (r *round) take(i int, answers []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard++
	heal := make(map[int][]*vote)
	for j := range r.polls {
		p := &r.polls[j]
		before := r.undecided(p)
		err := errNoAnswer
		if j < len(answers) {
			err = answers[j]
		}
		p.add(i, r.claims[j].TTL, err)
		if before && !r.undecided(p) {
			r.open--
		}
		if r.claims[j].TTL == 0 {
			continue
		}
		for _, node := range p.unsure { // without them there may be no quorum at the next renewal
			heal[node] = append(heal[node], p.vote)
		}
		p.unsure = nil
		if p.ours < r.store.quorum {
			continue
		}
		if before {
			p.vote.renewed(r.began, r.claims[j].TTL)
		}
		for _, node := range p.lost {
			heal[node] = append(heal[node], p.vote)
		}
		p.lost = nil
	}
	if !r.over && (r.open == 0 || r.heard == len(r.store.nodes)) {
		r.over = true
		close(r.decided)
	}
	for node, votes := range heal {
		r.store.tasks.Go(func() { _ = r.store.heal(node, votes) })
	}
}

// undecided says whether further answers can change what the round means for a claim.
func (r *round) undecided(p *poll) bool {
	return p.ours < r.store.quorum && p.gone <= len(r.store.nodes)-r.store.quorum
}

// add takes a node's answer. One that is not known to have granted for as long as the quorum
// promised does not count: it is asked again what it grants.
func (p *poll) add(i int, ttl time.Duration, err error) {
	if ttl > 0 {
		p.vote.renewedAt(i, err)
	}
	switch {
	case err == nil && ttl > 0 && p.certain[i] < ttl:
		p.errs = append(p.errs, errShorter)
	case err == nil && p.vote.counts(i):
		p.ours++
	case err == nil:
		p.unsure = append(p.unsure, i)
	case errors.Is(err, driver.ErrNotOwner):
		p.gone++
		p.lost = append(p.lost, i)
	default:
		p.errs = append(p.errs, err)
	}
}

// renews takes note of a renewal at all nodes.
func (v *vote) renews(ttl time.Duration) (certain []time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked.TTL = ttl
	for i := range v.slots {
		certain = append(certain, v.sends(i, ttl))
	}
	return certain
}

// renewedAt takes note of its outcome at node i.
func (v *vote) renewedAt(i int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answered(i, err)
}

func (v *vote) counts(i int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	most := v.slots[i].longest
	return v.slots[i].granted && (most == 0 || v.longest > 0 && most >= v.longest)
}

// renewed takes note that a quorum has renewed.
func (v *vote) renewed(began time.Time, ttl time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.longest > 0 {
		ttl = min(ttl, v.longest)
	}
	v.until = began.Add(ttl)
}

func (r *round) verdicts() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := make([]error, len(r.polls))
	for j := range r.polls {
		p := &r.polls[j]
		switch {
		case p.ours >= r.store.quorum:
		case p.gone > len(r.store.nodes)-r.store.quorum:
			errs[j] = driver.ErrNotOwner
		default:
			errs[j] = noQuorum(said(append(p.errs, errNoAnswer)))
		}
	}
	return errs
}

// heal acquires at one node what a quorum holds and that node has lost. It stops where the
// node stops answering: the next renewal finds what is missing. It says what the last one was answered.
func (s *Store) heal(node int, votes []*vote) (err error) {
	for _, v := range votes {
		claim, ok := v.board(node)
		if !ok {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience(context.Background()))
		_, err = v.fly(node, func() (driver.Grant, error) { return s.acquireAt(ctx, node, claim) })
		cancel()
		if driver.Explain(err).Open() {
			break
		}
	}
	return err
}

// board returns the claim if the vote is to be acquired at a node, and counts it as flying. Not beside
// another command that does so, nor when the grant is over, released or not: this may be the
// end of a slow queue.
func (v *vote) board(i int) (c ranked.Claim, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over || v.slots[i].flying > 0 || !v.stands() {
		return c, false
	}
	v.slots[i].flying++
	v.sends(i, v.asked.TTL)
	return ranked.Claim{Claim: v.at(v.asked), Rank: first, Floor: v.fence}, true
}
