package redislock

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// idleAfter is how long a subscription outlasts its last listener: one who waits listens
// again and again.
const idleAfter = 2 * time.Second

// hub is one subscription of a Store: to a channel of its own, on which the scripts tell a
// place in some line that its turn may have come. It lasts while somebody listens.
type hub struct {
	rdb      redis.UniversalClient
	id       string // of the Store
	channels string // what the names of all clients' channels begin with
	shard    *hubs  // nil outside of Cluster

	mu        sync.Mutex                            // protects the fields below
	feed      *feed                                 // nil if there is none
	listeners map[string]map[chan struct{}]struct{} // by place
	idle      *time.Timer
}

// feed is one subscription, from its connection to its end.
type feed struct {
	pubsub *redis.PubSub
	ready  chan struct{} // closed once the server has confirmed it
	gone   chan struct{} // closed when it is to end
	read   chan struct{} // closed when its reader has returned
}

// newID is 22 characters that no other Store has.
func newID() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

func newFeed(pubsub *redis.PubSub) *feed {
	return &feed{pubsub, make(chan struct{}), make(chan struct{}), make(chan struct{})}
}

func newHub(rdb redis.UniversalClient, id, channels string) *hub {
	return &hub{rdb: rdb, id: id, channels: channels, listeners: make(map[string]map[chan struct{}]struct{})}
}

// listen returns once the server is known to have the subscription: whatever is told to the
// place from then on is heard, through a channel of size one.
func (h *hub) listen(ctx context.Context, place string) (heard <-chan struct{}, leave func(), err error) {
	wake := make(chan struct{}, 1)
	f := h.join(place, wake)
	leave = func() { h.leave(place, wake) }
	select {
	case <-f.ready:
		return wake, leave, nil
	case <-f.gone:
		leave()
		return nil, nil, redis.ErrClosed
	case <-ctx.Done():
		leave()
		return nil, nil, ctx.Err()
	}
}

func (h *hub) join(place string, wake chan struct{}) *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners[place] == nil {
		h.listeners[place] = make(map[chan struct{}]struct{})
	}
	h.listeners[place][wake] = struct{}{}
	if h.idle != nil {
		h.idle.Stop()
	}
	if h.feed == nil {
		h.feed = h.open()
	}
	return h.feed
}

// open begins a subscription. The connection outlives whoever it was opened for.
func (h *hub) open() *feed {
	if h.shard != nil {
		return h.openShard()
	}
	f := newFeed(h.rdb.Subscribe(context.Background()))
	messages := f.pubsub.ChannelWithSubscriptions()
	go func() {
		defer close(f.read)
		// If it cannot be sent, go-redis sends it once there is a connection.
		_ = f.pubsub.Subscribe(context.Background(), h.channels+h.id)
		h.reader(f, messages)
	}()
	return f
}

// reader tells places what they are told. It tells all of them when the channel was
// subscribed to again: what was published meanwhile is lost.
func (h *hub) reader(f *feed, messages <-chan any) {
	confirmed := false
	for m := range messages {
		switch m := m.(type) {
		case *redis.Message:
			h.tell(m.Payload)
		case *redis.Subscription:
			switch {
			case m.Kind != "subscribe":
			case confirmed:
				h.tellAll()
			default:
				confirmed = true
				close(f.ready)
			}
		}
	}
}

func (h *hub) tell(place string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for wake := range h.listeners[place] {
		hint(wake)
	}
}

func (h *hub) tellAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, listeners := range h.listeners {
		for wake := range listeners {
			hint(wake)
		}
	}
}

func hint(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default: // it has been told already
	}
}

// leave lets the subscription end some time after the last listener has gone.
func (h *hub) leave(place string, wake chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners[place], wake)
	if len(h.listeners[place]) == 0 {
		delete(h.listeners, place)
	}
	if len(h.listeners) > 0 || h.feed == nil {
		return
	}
	if h.idle == nil {
		h.idle = time.AfterFunc(idleAfter, h.rest)
	} else {
		h.idle.Reset(idleAfter)
	}
}

func (h *hub) rest() {
	h.mu.Lock()
	var f *feed
	if len(h.listeners) == 0 {
		f = h.detach()
	}
	h.mu.Unlock()
	_ = f.end() // nobody needs it any more
}

func (h *hub) detach() *feed {
	f := h.feed
	h.feed = nil
	if f != nil {
		close(f.gone)
	}
	return f
}

func (f *feed) end() error {
	if f == nil {
		return nil
	}
	err := f.pubsub.Close()
	<-f.read
	return err
}

// close ends the subscription. Another Locker on the same Store that still listens is told
// to look again, and opens a new one.
func (h *hub) close() error {
	h.mu.Lock()
	f := h.detach()
	if h.idle != nil {
		h.idle.Stop()
	}
	h.mu.Unlock()
	h.tellAll()
	return f.end()
}
