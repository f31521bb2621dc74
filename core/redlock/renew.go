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
	ballot  *ballot
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
		b := s.known(c)
		r.polls[j].ballot = b
		r.claims[j] = b.at(c)
		if c.TTL > 0 {
			r.polls[j].certain = b.renews(c.TTL)
		}
	}
	return r
}

// take counts the answers of node i.
func (r *round) take(i int, answers []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard++
	heal := make(map[int][]*ballot)
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
			heal[node] = append(heal[node], p.ballot)
		}
		p.unsure = nil
		if p.ours < r.store.quorum {
			continue
		}
		if before {
			p.ballot.renewed(r.began, r.claims[j].TTL)
		}
		for _, node := range p.lost {
			heal[node] = append(heal[node], p.ballot)
		}
		p.lost = nil
	}
	if !r.over && (r.open == 0 || r.heard == len(r.store.nodes)) {
		r.over = true
		close(r.decided)
	}
	for node, ballots := range heal {
		r.store.tasks.Go(func() { _ = r.store.heal(node, ballots) })
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
		p.ballot.renewedAt(i, err)
	}
	switch {
	case err == nil && ttl > 0 && p.certain[i] < ttl:
		p.errs = append(p.errs, errShorter)
	case err == nil && p.ballot.counts(i):
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
func (b *ballot) renews(ttl time.Duration) (certain []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked.TTL = ttl
	for i := range b.seats {
		certain = append(certain, b.sends(i, ttl))
	}
	return certain
}

// renewedAt takes note of its outcome at node i.
func (b *ballot) renewedAt(i int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answered(i, err)
}

func (b *ballot) counts(i int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := b.seats[i].longest
	return b.seats[i].granted && (most == 0 || b.longest > 0 && most >= b.longest)
}

// renewed takes note that a quorum has renewed.
func (b *ballot) renewed(began time.Time, ttl time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.longest > 0 {
		ttl = min(ttl, b.longest)
	}
	b.until = began.Add(ttl)
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
func (s *Store) heal(node int, ballots []*ballot) (err error) {
	for _, b := range ballots {
		claim, ok := b.board(node)
		if !ok {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience(context.Background()))
		_, err = b.fly(node, func() (driver.Grant, error) { return s.acquireAt(ctx, node, claim) })
		cancel()
		if driver.Explain(err).Open() {
			break
		}
	}
	return err
}

// board returns the claim if the ballot is to be acquired at a node, and counts it as flying. Not beside
// another command that does so, nor when the grant is over, released or not: this may be the
// end of a slow queue.
func (b *ballot) board(i int) (c ranked.Claim, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.seats[i].flying > 0 || !b.stands() {
		return c, false
	}
	b.seats[i].flying++
	b.sends(i, b.asked.TTL)
	return ranked.Claim{Claim: b.at(b.asked), Rank: first, Floor: b.fence}, true
}
