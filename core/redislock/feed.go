package redislock

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// soonReady is how long a new subscription is waited for before a waiter is lined up.
	soonReady = 50 * time.Millisecond
	// dialBound is what it may take to connect and to ask for it.
	dialBound = 5 * time.Second
	// pingAfter is how long it may be silent before it is asked whether it still lives, and how
	// long that answer may take.
	pingAfter = 3 * time.Second

	// Pauses after a subscription that failed, until another one is tried.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// feed is one subscription, on a connection of its own, from its dialling to its end. It ends
// with its connection, and is followed by another one: that may have to go elsewhere.
type feed struct {
	end   context.CancelFunc
	gone  <-chan struct{} // closed when it has to end
	over  chan struct{}   // closed when nothing of it is left
	ready chan struct{}   // closed once the server has confirmed it
	since time.Time       // when that was; for its own goroutine
	soon  time.Time       // until when that is worth waiting for
}

// tells says whether the server is known to have the subscription.
func (f *feed) tells() bool { return f != nil && !f.ending() && closed(f.ready) }

func (f *feed) ending() bool { return closed(f.gone) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// open begins a subscription, which outlives whoever it is opened for. h.mu is held.
func (h *hub) open() *feed {
	ctx, end := context.WithCancel(context.Background())
	f := &feed{end: end, gone: ctx.Done(), over: make(chan struct{}), ready: make(chan struct{})}
	if h.pause == 0 {
		f.soon = time.Now().Add(soonReady)
	}
	h.all.begin(f)
	go func() {
		defer h.all.done(f)
		err := h.subscribe(ctx, f)
		h.lost(ctx, f, err)
	}()
	return f
}

func (h *hub) subscribe(ctx context.Context, f *feed) error {
	defer f.end()
	rdb, leave, err := h.all.node(ctx, h.channels)
	if err != nil {
		return err
	}
	defer leave()
	pubsub := rdb.Subscribe(ctx) // to nothing, as yet
	var closing sync.WaitGroup
	defer closing.Wait()
	defer f.end()
	closing.Go(func() { // nothing else interrupts a read; where it still dials, this waits for that
		<-ctx.Done()
		_ = pubsub.Close() // it is of no use any more
	})
	return h.hear(ctx, f, pubsub)
}

// hear tells places what they are told, until the subscription breaks.
func (h *hub) hear(ctx context.Context, f *feed, pubsub *redis.PubSub) error {
	channel := h.channels + h.all.id
	sharded := h.all.sharded()
	ask := pubsub.Subscribe
	if sharded {
		ask = pubsub.SSubscribe
	}
	dialling, stop := context.WithTimeout(ctx, dialBound)
	err := ask(dialling, channel)
	stop()
	if err != nil {
		return err
	}
	// With a context that has ended go-redis reads on, but does not dial by itself, for as long as
	// that takes, while those who listen believe that they hear.
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for silent := false; ; {
		m, err := pubsub.ReceiveTimeout(ended, pingAfter)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !silent {
			silent, err = true, pubsub.Ping(ended)
		} else {
			silent = false
		}
		if sharded && redis.HasErrorPrefix(err, "unknown command") {
			h.all.old.Store(true)
			sharded, err = false, pubsub.Subscribe(ended, channel)
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
			case f.since.IsZero():
				f.since = time.Now()
				close(f.ready)
			default: // again, after a gap
				h.tellAll()
			}
		}
	}
}

// lost has those who relied on f look again, and so open another subscription; after one that
// has not stood for long, later and later.
func (h *hub) lost(ctx context.Context, f *feed, err error) {
	h.mu.Lock()
	mine := h.feed == f
	if mine {
		h.feed = nil
		h.pause = min(max(2*h.pause, firstRetry), lastRetry)
		if !f.since.IsZero() && time.Since(f.since) > lastRetry {
			h.pause = 0
		}
		h.notBefore = time.Now().Add(h.pause)
	}
	h.mu.Unlock()
	if !mine { // somebody has ended it
		return
	}
	if rdb, ok := h.all.rdb.(*redis.ClusterClient); ok && !errors.Is(err, errFull) {
		rdb.ReloadState(ctx) // in the background
	}
	if !f.since.IsZero() {
		h.tellAll()
	}
}
