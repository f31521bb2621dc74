package redislock

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// hub is the one subscription connection of a Store. It is subscribed to a channel while
// somebody listens there, and tells them that something was published.
type hub struct {
	rdb redis.UniversalClient

	// line is held while a subscription is sent or taken back, so that the server hears of
	// them in the order in which they were decided. It is taken before mu.
	line sync.Mutex

	mu       sync.Mutex // protects the fields below
	pubsub   *redis.PubSub
	read     chan struct{} // closed when the reader of pubsub has returned
	channels map[string]*channel
}

type channel struct {
	ready     chan struct{} // closed once the server has confirmed the subscription
	gone      chan struct{} // closed when the hub is
	confirmed bool
	listeners map[chan struct{}]struct{}
}

func newHub(rdb redis.UniversalClient) *hub {
	return &hub{rdb: rdb, channels: make(map[string]*channel)}
}

// listen returns once the server is known to have the subscription: whatever is published
// from then on is heard, through a channel of size one.
func (h *hub) listen(ctx context.Context, name string) (heard <-chan struct{}, leave func(), err error) {
	wake := make(chan struct{}, 1)
	ch, first := h.join(name, wake)
	if first {
		h.subscribe(ctx, name)
	}
	leave = func() { h.leave(name, ch, wake) }
	select {
	case <-ch.ready:
		return wake, leave, nil
	case <-ch.gone:
		leave()
		return nil, nil, redis.ErrClosed
	case <-ctx.Done():
		leave()
		return nil, nil, ctx.Err()
	}
}

func (h *hub) join(name string, wake chan struct{}) (ch *channel, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch, known := h.channels[name]
	if !known {
		ch = &channel{
			ready:     make(chan struct{}),
			gone:      make(chan struct{}),
			listeners: make(map[chan struct{}]struct{}),
		}
		h.channels[name] = ch
	}
	ch.listeners[wake] = struct{}{}
	return ch, !known
}

func (h *hub) subscribe(ctx context.Context, name string) {
	h.line.Lock()
	defer h.line.Unlock()
	// If it cannot be sent, go-redis sends it once there is a connection.
	pubsub := h.open() //nolint:contextcheck // the connection outlives whoever opened it
	_ = pubsub.Subscribe(context.WithoutCancel(ctx), name)
}

// leave takes the subscription back when the last listener goes.
func (h *hub) leave(name string, ch *channel, wake chan struct{}) {
	h.mu.Lock()
	delete(ch.listeners, wake)
	last := len(ch.listeners) == 0
	h.mu.Unlock()
	if !last {
		return
	}
	h.line.Lock()
	defer h.line.Unlock()
	h.mu.Lock()
	unwanted := h.channels[name] == ch && len(ch.listeners) == 0
	if unwanted {
		delete(h.channels, name)
	}
	pubsub := h.pubsub
	h.mu.Unlock()
	if unwanted && pubsub != nil {
		_ = pubsub.Unsubscribe(context.Background(), name) // if it fails, it goes with its connection
	}
}

// open returns the subscription connection, and begins to read one that is new.
func (h *hub) open() *redis.PubSub {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pubsub == nil {
		h.pubsub = h.rdb.Subscribe(context.Background())
		h.read = make(chan struct{})
		go h.reader(h.pubsub.ChannelWithSubscriptions(), h.read)
	}
	return h.pubsub
}

// reader wakes those whose channel something was published on. It also wakes them when
// their channel was subscribed to again: what was published meanwhile is lost.
func (h *hub) reader(messages <-chan any, done chan<- struct{}) {
	defer close(done)
	for m := range messages {
		switch m := m.(type) {
		case *redis.Message:
			h.tell(m.Channel, false)
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				h.tell(m.Channel, true)
			}
		}
	}
}

func (h *hub) tell(name string, subscribed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := h.channels[name]
	switch {
	case ch == nil:
	case subscribed && !ch.confirmed:
		ch.confirmed = true
		close(ch.ready)
	default:
		ch.wake()
	}
}

func (c *channel) wake() {
	for wake := range c.listeners {
		select {
		case wake <- struct{}{}:
		default: // it has been told already
		}
	}
}

// close ends the subscription. Another Locker on the same Store that still listens is told
// to look again, and opens a new one.
func (h *hub) close() error {
	h.line.Lock()
	defer h.line.Unlock()
	h.mu.Lock()
	pubsub, read := h.pubsub, h.read
	h.pubsub, h.read = nil, nil
	for _, ch := range h.channels {
		close(ch.gone)
		ch.wake()
	}
	h.channels = make(map[string]*channel)
	h.mu.Unlock()
	if pubsub == nil {
		return nil
	}
	err := pubsub.Close()
	<-read
	return err
}
