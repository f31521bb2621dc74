package redlock

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"sync"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
)

// tenure is what core knows a ballot by.
type tenure struct{ name, token string }

// ballot is one token at the nodes, from the first command that carries it until none may
// carry it any more. An attempt that fails is given back, and the next one is a ballot with a
// token of its own, even where core's token is still the same: a release that is late must not
// find a token that is in use again.
//
// A ballot ends with the first of these: core's Release, or an Acquire that has got no quorum.
// From then on nothing asks for it. An acquire that was under way at a node is followed by a
// release there when its outcome is known, so it makes no difference which comes first.
type ballot struct {
	store *store
	claim driver.Claim

	mu      sync.Mutex // protects the fields below
	calls   int        // Acquires under way
	granted bool       // by a quorum, once
	over    bool
	ttl     time.Duration // what the quorum has promised
	until   time.Time     // when the promise ends unless it is renewed
	seats   []seat        // one for each node
	place   string        // of the Acquire that was granted
	longest time.Duration // TTL that a node was asked for
	fence   uint64        // of the grant; a quorum counts on from it
	leaves  string        // the place that a release leaves, too
	stirred chan struct{} // closed, and made anew, when a release has an outcome
}

// seat is a ballot's at one node.
type seat struct {
	flying int           // acquires under way
	stray  time.Time     // when one went unanswered: it may have been executed, or may be still; zero if none has
	ttl    time.Duration // what the node has granted; 0 until it has said so

	freeing bool // a release is under way
	again   bool // another one is to follow
	doubt   bool // one was not answered: it may have been executed
	tried   bool // one has ended since it was last asked for
	err     error
	left    outcome
}

// taken says whether the ballot may be at the node.
func (s *seat) taken() bool { return s.ttl > 0 || !s.stray.IsZero() }

// outcome is what a release came to at a node.
type outcome uint8

const (
	unknown outcome = iota
	freed
	absent // the node did not have it
)

func (s *store) newBallot(c driver.Claim, token string) *ballot {
	return &ballot{
		store:   s,
		claim:   driver.Claim{Name: c.Name, Token: token, Label: c.Label, TTL: c.TTL},
		seats:   make([]seat, len(s.nodes)),
		stirred: make(chan struct{}),
	}
}

// newToken makes a secret of 128 bits, in the form that core gives it.
func newToken() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the process instead
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// open returns the ballot of core's token for one more Acquire, a new one if there is none. It counts acquires at
// all nodes as under way.
func (s *store) open(c driver.Claim) *ballot {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := tenure{c.Name, c.Token}
	if b := s.ballots[key]; b != nil && b.enter() {
		return b
	}
	b := s.newBallot(c, newToken())
	b.enter()
	s.prune()
	s.ballots[key] = b
	return b
}

func (b *ballot) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.granted && !b.stands() {
		return false
	}
	b.calls++
	b.launch()
	return true
}

// stands says whether a quorum keeps its promise still. The caller holds the mutex.
func (b *ballot) stands() bool { return time.Now().Before(b.until) }

// known returns the ballot of core's token. Where there is none, it is one whose token no
// node has been asked for: what they answer is true all the same.
func (s *store) known(c driver.Claim) *ballot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.ballots[tenure{c.Name, c.Token}]; b != nil {
		return b
	}
	return s.newBallot(c, c.Token)
}

func (s *store) forget(c driver.Claim, b *ballot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := (tenure{c.Name, c.Token}); s.ballots[key] == b {
		delete(s.ballots, key)
	}
}

const minPrune = 1024

// prune throws out the ballots of tenures that were lost and so never released, once the
// number of ballots has doubled since the last time.
func (s *store) prune() {
	if len(s.ballots) < s.pruneAt {
		return
	}
	for key, b := range s.ballots {
		if b.expired() {
			delete(s.ballots, key)
		}
	}
	s.pruneAt = max(minPrune, 2*len(s.ballots))
}

func (b *ballot) expired() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls == 0 && !b.stands()
}

// launch counts acquires at all nodes as under way before any is asked. So a node whose turn comes when others have
// decided is asked too: that keeps the place alive there. The caller holds the mutex.
func (b *ballot) launch() {
	for i := range b.seats {
		b.seats[i].flying++
	}
}

// fly asks node i, and deals with an outcome that nobody waits for any more. The caller has
// counted the seat as flying. Once the ballot is over, only a place in the queue is a reason to ask.
func (b *ballot) fly(ctx context.Context, i int, c driver.Claim) (g driver.Grant, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.longest = max(b.longest, c.TTL)
	if err = driver.NotSent(errOver); !b.over || c.Rank > first {
		b.mu.Unlock()
		g, err = b.store.nodes[i].Acquire(ctx, c)
		b.mu.Lock()
	}
	seat := &b.seats[i]
	seat.flying--
	if err == nil {
		seat.ttl = c.TTL
		if g.TTL > 0 {
			seat.ttl = min(seat.ttl, g.TTL)
		}
	}
	if open(err) {
		seat.stray = time.Now()
	}
	if (err == nil || open(err)) && (b.over || b.calls == 0 && b.granted && !b.stands()) {
		b.free(i) // not under a call that counts this grant: if it fails, it gives all of them back
	}
	if open(err) && b.over {
		b.sweep(i)
	}
	return g, err
}

var errOver = errors.New("redlock: given up")

// end has nothing ask for the ballot any more, and releases it at every node that is chosen.
// The caller holds the mutex.
func (b *ballot) end(chosen func(*seat) bool) {
	over := b.over
	b.over = true
	for i := range b.seats {
		seat := &b.seats[i]
		seat.tried = false
		if seat.left == unknown && chosen(seat) {
			b.free(i)
		}
		if !over && !seat.stray.IsZero() {
			b.sweep(i)
		}
	}
}

// sweep releases the ballot at node i again and again, for as long as a command that went
// unanswered there may be executed yet. The caller holds the mutex, and the ballot is over.
func (b *ballot) sweep(i int) {
	left := b.longest - time.Since(b.seats[i].stray)
	if left <= 0 {
		return
	}
	b.store.late[i].Add(sweep.Task{After: sweep.First, For: left, Clean: func(within time.Duration) sweep.Outcome {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		err := b.release(ctx, i)
		if err == nil || errors.Is(err, driver.ErrNotOwner) {
			return sweep.Answered
		}
		return sweep.Silent
	}})
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
