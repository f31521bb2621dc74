package redislock

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// subscribers are the subscriptions of a Store. On a standalone server there is one. In Cluster, a plain
// message goes to every node. So each slot that somebody waits for has a channel of its own in that
// slot, and its messages reach only the nodes of its shard: see line.lua.
type subscribers struct {
	rdb    redis.UniversalClient
	id     string      // tells this Store from all others that use the same keys
	single *subscriber // not used by slots
	layout *layout
	old    atomic.Bool // the servers are older than Redis 7: they have no sharded channels

	mu     sync.Mutex // protects the fields below; may be taken while a subscriber's is held
	bySlot map[int]*subscriber
	feeds  map[*feed]struct{} // those that have not ended completely
	taken  map[string]int     // number of subscriptions, by the address of a node
}

func newSubscribers(rdb redis.UniversalClient, l *layout) *subscribers {
	s := &subscribers{
		rdb: rdb, id: newID(), layout: l,
		bySlot: make(map[int]*subscriber), feeds: make(map[*feed]struct{}), taken: make(map[string]int),
	}
	s.single = newSubscriber(s, "{"+l.prefix+"}:v1:wake:")
	return s
}

// member is the member of a queue that stands for a claim's place.
func (s *subscribers) member(c driver.Claim) string { return s.id + c.Token }

// channels is the beginning of the names of the channels on which clients that wait for a name are
// told.
func (s *subscribers) channels(name string) string {
	if !s.layout.bySlot() {
		return s.single.channels
	}
	return s.inSlot(s.layout.slotOf(name))
}

// sharded says whether each slot has a channel of its own.
func (s *subscribers) sharded() bool { return s.layout.bySlot() && !s.old.Load() }

func (s *subscribers) inSlot(slot int) string { return "{" + s.layout.tags.of(slot) + "}:v1:shard:" }

// of returns the subscriber for a name. Subscribers without listeners are kept: they are small, and there are no
// more than slots.
func (s *subscribers) of(name string) *subscriber {
	if !s.layout.bySlot() {
		return s.single
	}
	at := s.layout.slotOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.bySlot[at]
	if one == nil {
		one = newSubscriber(s, s.inSlot(at))
		s.bySlot[at] = one
	}
	return one
}

// perNode is how many subscriptions a Store has at one node of a Cluster at most. Each has a
// connection of its own. A client that chooses the names to wait for must not choose how many
// connections there are.
const perNode = 16

// errFull says that a node has that many. Waiters for the slot look more often, until another slot
// has become idle.
var errFull = errors.New("redislock: no more subscriptions at this node")

// node returns the node at which to subscribe to a channel. It takes one of the node's subscriptions,
// until leave is called.
func (s *subscribers) node(ctx context.Context, channel string) (rdb redis.UniversalClient, leave func(), err error) {
	rdb, addr := s.rdb, "" // a plain client has one address
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, channel)
		if err != nil {
			return nil, nil, err
		}
		rdb, addr = master, master.Options().Addr
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[addr] == perNode {
		return nil, nil, errFull
	}
	s.taken[addr]++
	return rdb, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.taken[addr]--; s.taken[addr] == 0 {
			delete(s.taken, addr)
		}
	}, nil
}

// subscribed says that somebody of this process waits, or has waited of late. Then others probably wait, too.
func (s *subscribers) subscribed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds) > 0
}

func (s *subscribers) begin(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeds[f] = struct{}{}
}

func (s *subscribers) done(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.feeds, f)
	close(f.over)
}

// close ends the subscriptions, and waits until they have ended or ctx has. Nothing interrupts a
// handshake that gets no answer.
func (s *subscribers) close(ctx context.Context) error {
	s.mu.Lock()
	all := append(slices.Collect(maps.Values(s.bySlot)), s.single)
	s.mu.Unlock()
	for _, one := range all {
		one.close()
	}
	s.mu.Lock()
	feeds := slices.Collect(maps.Keys(s.feeds))
	s.mu.Unlock()
	for _, f := range feeds {
		if !f.ending() { // another Locker on the same Store has begun it
			continue
		}
		select {
		case <-f.over:
		case <-ctx.Done():
			return fmt.Errorf("redislock: a subscription has still not ended: %w", ctx.Err())
		}
	}
	return nil
}

// newID is 22 characters that no other Store has.
func newID() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(raw[:])
}
