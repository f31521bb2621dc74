package redislock

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// hubs are the subscriptions of a Store. On a server by itself there is one. In Cluster a
// message that is published the plain way goes to every node, so there each slot that is
// waited for has a channel of its own, in that slot, which only the nodes of its shard hear
// of: see line.lua.
type hubs struct {
	rdb    redis.UniversalClient
	id     string // of this Store, among all that use the same keys
	single *hub   // nil in Cluster
	tags   *slotTags
	old    atomic.Bool // the servers know no sharded channels: they are older than Redis 7

	mu     sync.Mutex // protects bySlot
	bySlot map[int]*hub
}

func newHubs(rdb redis.UniversalClient, prefix string, tags *slotTags) *hubs {
	h := &hubs{rdb: rdb, id: newID(), tags: tags, bySlot: make(map[int]*hub)}
	if tags == nil {
		h.single = newHub(rdb, h.id, "{"+prefix+"}:v1:wake:")
	}
	return h
}

// member is what stands in a line for a claim's place.
func (h *hubs) member(c driver.Claim) string { return h.id + c.At() }

// channels is what the names of all clients' channels begin with, of those who wait for a
// name.
func (h *hubs) channels(name string) string {
	if h.tags == nil {
		return h.single.channels
	}
	return h.inSlot(slot(h.tags.prefix + name))
}

func (h *hubs) inSlot(slot int) string { return "{" + h.tags.of(slot) + "}:v1:shard:" }

// of is the subscription for a name. Those that nobody listens to are kept: they are few
// bytes, and not more than there are slots.
func (h *hubs) of(name string) *hub {
	if h.tags == nil {
		return h.single
	}
	at := slot(h.tags.prefix + name)
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.bySlot[at]
	if one == nil {
		one = newHub(h.rdb, h.id, h.inSlot(at))
		one.shard = h
		h.bySlot[at] = one
	}
	return one
}

func (h *hubs) close() error {
	h.mu.Lock()
	all := make([]*hub, 0, 1+len(h.bySlot))
	for _, one := range h.bySlot {
		all = append(all, one)
	}
	h.mu.Unlock()
	if h.single != nil {
		all = append(all, h.single)
	}
	var errs []error
	for _, one := range all {
		errs = append(errs, one.close())
	}
	return errors.Join(errs...)
}

// pingAfter is how long a shard's subscription may be silent before it is asked whether it
// still lives, and how long that answer may take.
const pingAfter = 3 * time.Second

// openShard begins a subscription in a slot. Unlike the client's own, it ends with its
// connection, or when the slot goes to another node: a new one may have to go elsewhere.
func (h *hub) openShard() *feed {
	f := newFeed(h.rdb.Subscribe(context.Background()))
	go func() {
		defer close(f.read)
		err := h.hear(f)
		if redis.HasErrorPrefix(err, "unknown command") {
			h.shard.old.Store(true)
		}
		h.lost(f)
	}()
	return f
}

func (h *hub) hear(f *feed) error {
	ctx := context.Background() // the connection outlives whoever it was opened for
	subscribe := f.pubsub.SSubscribe
	if h.shard.old.Load() {
		subscribe = f.pubsub.Subscribe
	}
	if err := subscribe(ctx, h.channels+h.id); err != nil {
		return err
	}
	confirmed := false
	for silent := false; ; {
		m, err := f.pubsub.ReceiveTimeout(ctx, pingAfter)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !silent {
			silent, err = true, f.pubsub.Ping(ctx)
		} else {
			silent = false
		}
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *redis.Message:
			h.tell(m.Payload)
		case *redis.Subscription:
			switch {
			case m.Kind == "sunsubscribe": // the slot has moved
				return redis.ErrClosed
			case confirmed:
				h.tellAll()
			default:
				confirmed = true
				close(f.ready)
			}
		}
	}
}

// lost has those who listen look again, and so open another subscription.
func (h *hub) lost(f *feed) {
	h.mu.Lock()
	mine := h.feed == f
	if mine {
		h.detach()
	}
	h.mu.Unlock()
	if !mine {
		return // whoever has detached it closes it
	}
	_ = f.pubsub.Close() // it is of no use any more
	if rdb, ok := h.rdb.(*redis.ClusterClient); ok {
		rdb.ReloadState(context.Background())
	}
	h.tellAll()
}
