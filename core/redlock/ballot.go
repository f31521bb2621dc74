package redlock

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// owner is what core knows a ballot by.
type owner struct{ name, token string }

// ballot is one token at the nodes, from the first command that carries it until none may
// carry it any more. An attempt that fails is given back, and the next one is a ballot with a
// token of its own, even where core's token is still the same: a release that is late must not
// find a token that is in use again.
//
// A ballot ends with the first of these: core's Release, or an attempt that has got no quorum.
// From then on nothing asks for it. A call that was under way at a node is followed by a
// release there when its outcome is known, so it makes no difference which comes first.
type ballot struct {
	store   *Store
	name    string
	token   string
	earlier *ballot            // whose entry this one goes on with, or nil
	rank    uint64             // of its entry in the queues of the nodes; 0 if it is in none
	queued  context.Context    //nolint:containedctx // of the calls that wait at nodes; ends with the ballot
	leave   context.CancelFunc // of queued

	mu      sync.Mutex // protects the fields below
	calls   int        // Acquires and Waits under way
	used    time.Time  // by the last of them
	heard   time.Time  // when a quorum has last answered while it was in the queues, or when it was made
	granted bool       // by a quorum, once
	over    bool
	until   time.Time     // when the quorum's promise ends unless it is renewed
	longest time.Duration // the most that a quorum renews; 0 means whatever is asked for
	seats   []seat        // one for each node
	asked   driver.Claim  // of the last call
	most    time.Duration // the longest TTL that a node was asked for
	fence   uint64        // of the grant; a quorum counts on from it
	stirred chan struct{} // closed, and made anew, when a release has an outcome
}

func (s *Store) newBallot(c driver.Claim, token string, rank uint64) *ballot {
	b := &ballot{
		store: s, name: c.Name, token: token, rank: rank, asked: c, used: time.Now(), heard: time.Now(),
		seats: make([]seat, len(s.nodes)), stirred: make(chan struct{}),
	}
	b.queued, b.leave = context.WithCancel(context.Background())
	return b
}

// newToken makes a secret of 128 bits, in the form that core gives it.
func newToken() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the process instead
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// at is core's claim as the nodes get it.
func (b *ballot) at(c driver.Claim) driver.Claim {
	return driver.Claim{Name: b.name, Token: b.token, Label: c.Label, TTL: c.TTL}
}

// open returns the ballot of core's token for one more call, a new one if there is none. A rank is for a ballot that is in no queue yet.
func (s *Store) open(c driver.Claim, rank uint64) *ballot {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := owner{c.Name, c.Token}
	if b := s.ballots[key]; b != nil && b.enter(c) {
		return b
	}
	b := s.newBallot(c, newToken(), rank)
	b.enter(c)
	s.prune()
	s.ballots[key] = b
	return b
}

func (b *ballot) enter(c driver.Claim) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.granted && !b.stands() {
		return false
	}
	b.asked, b.used, b.most = c, time.Now(), max(b.most, c.TTL)
	b.calls++
	return true
}

// stands says whether a quorum keeps its promise still. The caller holds the mutex.
func (b *ballot) stands() bool { return time.Now().Before(b.until) }

// known returns the ballot of core's token. Where there is none, it is one whose token no
// node has been asked for: what they answer is true all the same.
func (s *Store) known(c driver.Claim) *ballot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.ballots[owner{c.Name, c.Token}]; b != nil {
		return b
	}
	return s.newBallot(c, c.Token, 0)
}

// forget drops a ballot that is over. If it may be at nodes still, it is remembered by its name.
func (s *Store) forget(c driver.Claim, b *ballot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := (owner{c.Name, c.Token}); s.ballots[key] == b {
		delete(s.ballots, key)
	}
	p := s.behind[c.Name]
	if p == nil {
		p = &leftover{strays: make([]time.Time, len(s.nodes))}
		s.behind[c.Name] = p
	}
	p.ballots = append(p.ballots, b)
	s.tidyBehind(c.Name)
}

// leftover is what is left of the attempts for one name that are over. As long as a node says nothing, each attempt leaves something there.
type leftover struct {
	ballots []*ballot   // of which more may be at nodes than what went unanswered
	strays  []time.Time // for each node: until when what went unanswered there may be there
}

// tidyBehind drops the ballots of a name of which nothing but what went unanswered may be at nodes. The caller holds the mutex.
func (s *Store) tidyBehind(name string) {
	p, now := s.behind[name], time.Now()
	p.ballots = slices.DeleteFunc(p.ballots, func(b *ballot) bool { return b.goes(p.strays) })
	if len(p.ballots) == 0 && !slices.ContainsFunc(p.strays, now.Before) {
		delete(s.behind, name)
	}
}

// leftAt says whether an earlier attempt of this process may still have the name of b at a node.
func (s *Store) leftAt(node int, b *ballot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, now := s.behind[b.name], time.Now()
	if p == nil {
		return false
	}
	return now.Before(p.strays[node]) || slices.ContainsFunc(p.ballots, func(earlier *ballot) bool {
		lingers, stray := earlier.lingersAt(node)
		return earlier != b && (lingers || now.Before(stray))
	})
}

// goes says whether nothing but what went unanswered may be at nodes, and takes note until when that may be there.
func (b *ballot) goes(strays []time.Time) bool {
	for i := range strays {
		if lingers, _ := b.lingersAt(i); lingers {
			return false
		}
	}
	for i := range strays {
		if _, until := b.lingersAt(i); until.After(strays[i]) {
			strays[i] = until
		}
	}
	return true
}

const minPrune = 1024

// prune throws out the ballots of owners that were lost and so never released, and those that are at no node any more, of
// names that nobody has asked for since, once the number of both has doubled since the last time.
func (s *Store) prune() {
	if len(s.ballots)+len(s.behind) < s.pruneAt {
		return
	}
	for key, b := range s.ballots {
		if b.expired() {
			delete(s.ballots, key)
		}
	}
	for name := range s.behind {
		s.tidyBehind(name)
	}
	s.pruneAt = max(minPrune, 2*(len(s.ballots)+len(s.behind)))
}

func (b *ballot) expired() bool {
	const longest = 10 * time.Second // no entry of a queue lives for so long
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls == 0 && !b.stands() && time.Since(b.used) > longest
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
func (b *ballot) won(g *driver.Grant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || g.TTL <= 0 {
		return false
	}
	b.calls--
	b.fence = max(b.fence, g.Fence)
	b.granted, b.longest, b.until = true, g.Longest, g.Asked.Add(g.TTL)
	g.Fence = b.fence
	return true
}

// succeed makes a ballot that goes on with the entry of one that is over. Its rank is by another chance: each of two
// with the same one may have had some nodes.
func (s *Store) succeed(c driver.Claim, b *ballot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.newBallot(c, newToken(), b.rank+chance()-b.rank%ranked.Step)
	next.earlier, next.heard = b, b.heard
	b.earlier = nil
	if key := (owner{c.Name, c.Token}); s.ballots[key] == nil {
		s.ballots[key] = next
	}
}

// leaveQueues ends a ballot that stands in queues, and forgets its rank.
func (s *Store) leaveQueues(c driver.Claim, b *ballot) {
	b.mu.Lock()
	b.calls--
	b.end(func(*seat) bool { return true })
	b.mu.Unlock()
	s.forget(c, b)
}

// done ends a call of a ballot that goes on standing in the queues.
func (b *ballot) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls--
}

// unheard takes note of the answers to a Wait, and says whether no quorum has answered for so long.
func (b *ballot) unheard(t *tally, life time.Duration) bool {
	granted, held, _ := t.counts()
	b.mu.Lock()
	defer b.mu.Unlock()
	if granted+held >= t.store.quorum {
		b.heard = time.Now()
	}
	return time.Since(b.heard) > life
}

// detached ends when ctx or the ballot does, but is not of ctx: calls to slow nodes outlast the call that they are
// made for.
func (b *ballot) detached(ctx context.Context) (apart context.Context, stop func()) {
	var cancel context.CancelFunc
	if deadline, ok := ctx.Deadline(); ok {
		apart, cancel = context.WithDeadline(b.queued, deadline)
	} else {
		apart, cancel = context.WithCancel(b.queued)
	}
	unwatch := context.AfterFunc(ctx, cancel)
	return apart, func() { unwatch(); cancel() }
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
// is left alone. So is one that stands in queues, and has taken nothing.
func (s *Store) giveBack(ctx context.Context, c driver.Claim, b *ballot, late bool) remains {
	b.mu.Lock()
	b.calls--
	taken := func(seat *seat) bool { return seat.taken() || late && seat.flying > 0 }
	switch {
	case b.granted && b.stands():
		b.mu.Unlock()
		return owned
	case b.calls > 0:
		b.mu.Unlock()
		return something
	case b.rank > 0 && !slices.ContainsFunc(b.seats, func(seat seat) bool { return taken(&seat) }):
		b.mu.Unlock()
		return nothing
	}
	b.end(func(seat *seat) bool { return b.rank > 0 || taken(seat) })
	b.mu.Unlock()
	s.forget(c, b)
	if b.rank > 0 {
		s.succeed(c, b)
	}
	b.await(ctx, func() bool {
		for i := range b.seats {
			if seat := &b.seats[i]; seat.granted && seat.left == unknown && !seat.tried && seat.flying == 0 {
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
		if seat := &b.seats[i]; seat.flying > 0 || seat.freeing || !seat.stray.IsZero() || seat.granted && seat.left == unknown {
			return something
		}
	}
	return nothing
}

// end has nothing ask for the ballot any more, and releases it at every node that is chosen.
// The caller holds the mutex.
func (b *ballot) end(chosen func(*seat) bool) {
	over := b.over
	b.over = true
	b.leave()
	for i := range b.seats {
		seat := &b.seats[i]
		if seat.left == unknown && chosen(seat) {
			seat.tried = false
			b.free(i)
		}
		if !over && !seat.stray.IsZero() {
			b.sweep(i, b.most-time.Since(seat.stray))
		}
		if !over {
			b.sweepQueue(i)
		}
	}
}

// await waits until cond, which is called under the mutex, says yes.
func (b *ballot) await(ctx context.Context, cond func() bool) {
	for {
		b.mu.Lock()
		yes, stirred := cond(), b.stirred
		b.mu.Unlock()
		if yes {
			return
		}
		select {
		case <-stirred:
		case <-ctx.Done():
			return
		}
	}
}
