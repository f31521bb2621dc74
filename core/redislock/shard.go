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

// hubs are the subscriptions of a Store. On a standalone server there is one. In Cluster, a plain
// message goes to every node. So each slot that somebody waits for has a channel of its own in that
// slot, and its messages reach only the nodes of its shard: see line.lua.
type hubs struct {
	rdb    redis.UniversalClient
	id     string // tells this Store from all others that use the same keys
	single *hub   // not used by slots
	layout *layout
	old    atomic.Bool // the servers are older than Redis 7: they have no sharded channels

	mu     sync.Mutex // protects the fields below; may be taken while a hub's is held
	bySlot map[int]*hub
	feeds  map[*feed]struct{} // those that have not ended completely
	taken  map[string]int     // number of subscriptions, by the address of a node
}

func newHubs(rdb redis.UniversalClient, l *layout) *hubs {
	h := &hubs{
		rdb: rdb, id: newID(), layout: l,
		bySlot: make(map[int]*hub), feeds: make(map[*feed]struct{}), taken: make(map[string]int),
	}
	h.single = newHub(h, "{"+l.prefix+"}:v1:wake:")
	return h
}

// member is the member of a queue that stands for a claim's place.
func (h *hubs) member(c driver.Claim) string { return h.id + c.Token }

// channels is the beginning of the names of the channels on which clients that wait for a name are
// told.
func (h *hubs) channels(name string) string {
	if !h.layout.bySlot() {
		return h.single.channels
	}
	return h.inSlot(h.layout.slotOf(name))
}

// sharded says whether each slot has a channel of its own.
func (h *hubs) sharded() bool { return h.layout.bySlot() && !h.old.Load() }

func (h *hubs) inSlot(slot int) string { return "{" + h.layout.tags.of(slot) + "}:v1:shard:" }

// of returns the hub for a name. Hubs without listeners are kept: they are small, and there are no
// more than slots.
func (h *hubs) of(name string) *hub {
	if !h.layout.bySlot() {
		return h.single
	}
	at := h.layout.slotOf(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.bySlot[at]
	if one == nil {
		one = newHub(h, h.inSlot(at))
		h.bySlot[at] = one
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
func (h *hubs) node(ctx context.Context, channel string) (rdb redis.UniversalClient, leave func(), err error) {
	rdb, addr := h.rdb, "" // a plain client has one address
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, channel)
		if err != nil {
			return nil, nil, err
		}
		rdb, addr = master, master.Options().Addr
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken[addr] == perNode {
		return nil, nil, errFull
	}
	h.taken[addr]++
	return rdb, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.taken[addr]--; h.taken[addr] == 0 {
			delete(h.taken, addr)
		}
	}, nil
}

// subscribed says that somebody of this process waits, or has waited of late. Then others probably wait, too.
func (h *hubs) subscribed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.feeds) > 0
}

func (h *hubs) begin(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.feeds[f] = struct{}{}
}

func (h *hubs) done(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.feeds, f)
	close(f.over)
}

// close ends the subscriptions, and waits until they have ended or ctx has. Nothing interrupts a
// handshake that gets no answer.
func (h *hubs) close(ctx context.Context) error {
	h.mu.Lock()
	all := append(slices.Collect(maps.Values(h.bySlot)), h.single)
	h.mu.Unlock()
	for _, one := range all {
		one.close()
	}
	h.mu.Lock()
	feeds := slices.Collect(maps.Keys(h.feeds))
	h.mu.Unlock()
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
