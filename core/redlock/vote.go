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

// owner is what core knows a vote by.
type owner struct{ name, token string }

// vote is one token at the nodes, from the first command that carries it until none may
// carry it any more. An attempt that fails is given back, and the next one is a vote with a
// token of its own, even where core's token is still the same: a release that is late must not
// find a token that is in use again.
//
// A vote ends with the first of these: core's Release, or an attempt that has got no quorum.
// From then on nothing asks for it. A call that was under way at a node is followed by a
// release there when its outcome is known, so it makes no difference which comes first.
type vote struct {
	store   *Store
	name    string
	token   string
	earlier *vote              // whose entry this one goes on with, or nil
	rank    uint64             // of its entry in the queues of the nodes; 0 if it is in none
	queued  context.Context    //nolint:containedctx // of the calls that wait at nodes; ends with the vote
	leave   context.CancelFunc // of queued

	mu      sync.Mutex // protects the fields below
	calls   int        // Acquires and Waits under way
	used    time.Time  // by the last of them
	heard   time.Time  // when a quorum has last answered while it was in the queues, or when it was made
	granted bool       // by a quorum, once
	over    bool
	until   time.Time     // when the quorum's promise ends unless it is renewed
	longest time.Duration // the most that a quorum renews; 0 means whatever is asked for
	slots   []slot        // one for each node
	asked   driver.Claim  // of the last call
	most    time.Duration // the longest TTL that a node was asked for
	fence   uint64        // of the grant; a quorum counts on from it
	stirred chan struct{} // closed, and made anew, when a release has an outcome
}

func (s *Store) newVote(c driver.Claim, token string, rank uint64) *vote {
	v := &vote{
		store: s, name: c.Name, token: token, rank: rank, asked: c, used: time.Now(), heard: time.Now(),
		slots: make([]slot, len(s.nodes)), stirred: make(chan struct{}),
	}
	v.queued, v.leave = context.WithCancel(context.Background())
	return v
}

// newToken makes a secret of 128 bits, in the form that core gives it.
func newToken() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the process instead
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// at is core's claim as the nodes get it.
func (v *vote) at(c driver.Claim) driver.Claim {
	return driver.Claim{Name: v.name, Token: v.token, Label: c.Label, TTL: c.TTL}
}

// open returns the vote of core's token for one more call, a new one if there is none. A rank is for a vote that is in no queue yet.
func (s *Store) open(c driver.Claim, rank uint64) *vote {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := owner{c.Name, c.Token}
	if v := s.votes[key]; v != nil && v.enter(c) {
		return v
	}
	v := s.newVote(c, newToken(), rank)
	v.enter(c)
	s.prune()
	s.votes[key] = v
	return v
}

func (v *vote) enter(c driver.Claim) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over || v.granted && !v.stands() {
		return false
	}
	v.asked, v.used, v.most = c, time.Now(), max(v.most, c.TTL)
	v.calls++
	return true
}

// stands says whether a quorum keeps its promise still. The caller holds the mutex.
func (v *vote) stands() bool { return time.Now().Before(v.until) }

// known returns the vote of core's token. Where there is none, it is one whose token no
// node has been asked for: what they answer is true all the same.
func (s *Store) known(c driver.Claim) *vote {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.votes[owner{c.Name, c.Token}]; v != nil {
		return v
	}
	return s.newVote(c, c.Token, 0)
}

// forget drops a vote that is over. If it may be at nodes still, it is remembered by its name.
func (s *Store) forget(c driver.Claim, v *vote) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := (owner{c.Name, c.Token}); s.votes[key] == v {
		delete(s.votes, key)
	}
	p := s.behind[c.Name]
	if p == nil {
		p = &leftover{strays: make([]time.Time, len(s.nodes))}
		s.behind[c.Name] = p
	}
	p.votes = append(p.votes, v)
	s.tidyBehind(c.Name)
}

// leftover is what is left of the attempts for one name that are over. As long as a node says nothing, each attempt leaves something there.
type leftover struct {
	votes  []*vote     // of which more may be at nodes than what went unanswered
	strays []time.Time // for each node: until when what went unanswered there may be there
}

// tidyBehind drops the votes of a name of which nothing but what went unanswered may be at nodes. The caller holds the mutex.
func (s *Store) tidyBehind(name string) {
	p, now := s.behind[name], time.Now()
	p.votes = slices.DeleteFunc(p.votes, func(v *vote) bool { return v.goes(p.strays) })
	if len(p.votes) == 0 && !slices.ContainsFunc(p.strays, now.Before) {
		delete(s.behind, name)
	}
}

// leftAt says whether an earlier attempt of this process may still have the name of v at a node.
func (s *Store) leftAt(node int, v *vote) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, now := s.behind[v.name], time.Now()
	if p == nil {
		return false
	}
	return now.Before(p.strays[node]) || slices.ContainsFunc(p.votes, func(earlier *vote) bool {
		lingers, stray := earlier.lingersAt(node)
		return earlier != v && (lingers || now.Before(stray))
	})
}

// goes says whether nothing but what went unanswered may be at nodes, and takes note until when that may be there.
func (v *vote) goes(strays []time.Time) bool {
	for i := range strays {
		if lingers, _ := v.lingersAt(i); lingers {
			return false
		}
	}
	for i := range strays {
		if _, until := v.lingersAt(i); until.After(strays[i]) {
			strays[i] = until
		}
	}
	return true
}

const minPrune = 1024

// prune throws out the votes of owners that were lost and so never released, and those that are at no node any more, of
// names that nobody has asked for since, once the number of both has doubled since the last time.
func (s *Store) prune() {
	if len(s.votes)+len(s.behind) < s.pruneAt {
		return
	}
	for key, v := range s.votes {
		if v.expired() {
			delete(s.votes, key)
		}
	}
	for name := range s.behind {
		s.tidyBehind(name)
	}
	s.pruneAt = max(minPrune, 2*(len(s.votes)+len(s.behind)))
}

func (v *vote) expired() bool {
	const longest = 10 * time.Second // no entry of a queue lives for so long
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.calls == 0 && !v.stands() && time.Since(v.used) > longest
}

// largest returns the largest of a fence and of the one that the vote has: another quorum, asked again, may know of
// smaller ones only.
func (v *vote) largest(fence uint64) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return max(v.fence, fence)
}

// won takes note of a grant, unless the vote was ended while its answers were counted. Its fence is the largest of
// all calls.
func (v *vote) won(g *driver.Grant) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over || g.TTL <= 0 {
		return false
	}
	v.calls--
	v.fence = max(v.fence, g.Fence)
	v.granted, v.longest, v.until = true, g.Longest, g.Asked.Add(g.TTL)
	g.Fence = v.fence
	return true
}

// succeed makes a vote that goes on with the entry of one that is over. Its rank is by another chance: each of two
// with the same one may have had some nodes.
func (s *Store) succeed(c driver.Claim, v *vote) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.newVote(c, newToken(), v.rank+chance()-v.rank%ranked.Step)
	next.earlier, next.heard = v, v.heard
	v.earlier = nil
	if key := (owner{c.Name, c.Token}); s.votes[key] == nil {
		s.votes[key] = next
	}
}

// leaveQueues ends a vote that stands in queues, and forgets its rank.
func (s *Store) leaveQueues(c driver.Claim, v *vote) {
	v.mu.Lock()
	v.calls--
	v.end(func(*slot) bool { return true })
	v.mu.Unlock()
	s.forget(c, v)
}

// done ends a call of a vote that goes on standing in the queues.
func (v *vote) done() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls--
}

// unheard takes note of the answers to a Wait, and says whether no quorum has answered for so long.
func (v *vote) unheard(t *tally, life time.Duration) bool {
	granted, held, _ := t.counts()
	v.mu.Lock()
	defer v.mu.Unlock()
	if granted+held >= t.store.quorum {
		v.heard = time.Now()
	}
	return time.Since(v.heard) > life
}

// detached ends when ctx or the vote does, but is not of ctx: calls to slow nodes outlast the call that they are
// made for.
func (v *vote) detached(ctx context.Context) (apart context.Context, stop func()) {
	var cancel context.CancelFunc
	if deadline, ok := ctx.Deadline(); ok {
		apart, cancel = context.WithDeadline(v.queued, deadline)
	} else {
		apart, cancel = context.WithCancel(v.queued)
	}
	unwatch := context.AfterFunc(ctx, cancel)
	return apart, func() { unwatch(); cancel() }
}

// remains is what is left of a vote that was not won.
type remains uint8

const (
	nothing   remains = iota // and nothing will be
	something                // it is being dealt with
	owned                    // all: it was won before
)

// giveBack ends a vote that was not won. It waits for the nodes that have granted, since the
// next attempt would find itself there. Nodes whose answers are late are asked at once, and
// again when they have answered. A vote that was won before, or is counted by another call,
// is left alone. So is one that stands in queues, and has taken nothing.
func (s *Store) giveBack(ctx context.Context, c driver.Claim, v *vote, late bool) remains {
	v.mu.Lock()
	v.calls--
	taken := func(slot *slot) bool { return slot.taken() || late && slot.flying > 0 }
	switch {
	case v.granted && v.stands():
		v.mu.Unlock()
		return owned
	case v.calls > 0:
		v.mu.Unlock()
		return something
	case v.rank > 0 && !slices.ContainsFunc(v.slots, func(slot slot) bool { return taken(&slot) }):
		v.mu.Unlock()
		return nothing
	}
	v.end(func(slot *slot) bool { return v.rank > 0 || taken(slot) })
	v.mu.Unlock()
	s.forget(c, v)
	if v.rank > 0 {
		s.succeed(c, v)
	}
	v.await(ctx, func() bool {
		for i := range v.slots {
			if slot := &v.slots[i]; slot.granted && slot.left == unknown && !slot.tried && slot.flying == 0 {
				return false
			}
		}
		return true
	})
	return v.remains()
}

func (v *vote) remains() remains {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.slots {
		if slot := &v.slots[i]; slot.flying > 0 || slot.freeing || !slot.stray.IsZero() || slot.granted && slot.left == unknown {
			return something
		}
	}
	return nothing
}

// end has nothing ask for the vote any more, and releases it at every node that is chosen.
// The caller holds the mutex.
func (v *vote) end(chosen func(*slot) bool) {
	over := v.over
	v.over = true
	v.leave()
	for i := range v.slots {
		slot := &v.slots[i]
		if slot.left == unknown && chosen(slot) {
			slot.tried = false
			v.free(i)
		}
		if !over && !slot.stray.IsZero() {
			v.sweep(i, v.most-time.Since(slot.stray))
		}
		if !over {
			v.sweepQueue(i)
		}
	}
}

// await waits until cond, which is called under the mutex, says yes.
func (v *vote) await(ctx context.Context, cond func() bool) {
	for {
		v.mu.Lock()
		yes, stirred := cond(), v.stirred
		v.mu.Unlock()
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
