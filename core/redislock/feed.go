package redislock

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// soonReady is how long a waiter waits for a new subscription before it is queued without one.
	soonReady = 50 * time.Millisecond
	// dialBound is how long connecting and subscribing may take.
	dialBound = 5 * time.Second
	// pingAfter is how long a connection may be silent before it gets a ping, and how long the
	// answer may take.
	pingAfter = 3 * time.Second

	// Pauses between a subscription that failed and the next try.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// feed is one subscription, on a connection of its own, from dialling to its end. It ends with its
// connection. Another feed follows it, which may have to go to another node.
type feed struct {
	end   context.CancelFunc
	gone  <-chan struct{} // closed when it has to end
	over  chan struct{}   // closed when nothing of it is left
	ready chan struct{}   // closed once the server has confirmed it
	since time.Time       // when the server confirmed it; only its own goroutine uses this
	soon  time.Time       // how long waiters wait for the confirmation
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

// open begins a subscription, which outlives the caller that it is opened for. s.mu is held.
func (s *subscriber) open() *feed {
	ctx, end := context.WithCancel(context.Background())
	f := &feed{end: end, gone: ctx.Done(), over: make(chan struct{}), ready: make(chan struct{})}
	if s.pause == 0 {
		f.soon = time.Now().Add(soonReady)
	}
	s.all.begin(f)
	go func() {
		defer s.all.done(f)
		err := s.subscribe(ctx, f)
		s.lost(ctx, f, err)
	}()
	return f
}

func (s *subscriber) subscribe(ctx context.Context, f *feed) error {
	defer f.end()
	rdb, leave, err := s.all.node(ctx, s.channels)
	if err != nil {
		return err
	}
	defer leave()
	pubsub := rdb.Subscribe(ctx) // to nothing yet
	var closing sync.WaitGroup
	defer closing.Wait()
	defer f.end()
	closing.Go(func() { // nothing else interrupts a read; during a dial, Close waits for it
		<-ctx.Done()
		_ = pubsub.Close() // nobody needs it any more
	})
	return s.hear(ctx, f, pubsub)
}

// hear passes messages on to the places that they are for, until the subscription breaks.
func (s *subscriber) hear(ctx context.Context, f *feed, pubsub *redis.PubSub) error {
	channel := s.channels + s.all.id
	sharded := s.all.sharded()
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
	// With an ended context, go-redis still reads, but does not dial again by itself. Such a dial
	// could take long, and listeners would believe that they hear.
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for silent := false; ; {
		m, err := pubsub.ReceiveTimeout(ended, pingAfter)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !silent {
			silent, err = true, pubsub.Ping(ended)
		} else {
			silent = false
		}
		if sharded && says(err, "unknown command") {
			s.all.old.Store(true)
			sharded, err = false, pubsub.Subscribe(ended, channel)
		}
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *redis.Message:
			s.tell(m.Payload)
			runtime.Gosched() // whoever was told goes on before this reads on
		case *redis.Subscription:
			switch {
			case m.Kind == "sunsubscribe": // the slot has moved
				return redis.ErrClosed
			case f.since.IsZero():
				f.since = time.Now()
				close(f.ready)
			default: // again, after a gap
				s.tellAll()
			}
		}
	}
}

// lost wakes the listeners of f, so that they look again and open another subscription. If f did
// not stand for long, the next one has to wait, longer and longer.
func (s *subscriber) lost(ctx context.Context, f *feed, err error) {
	s.mu.Lock()
	mine := s.feed == f
	if mine {
		s.feed = nil
		s.pause = min(max(2*s.pause, firstRetry), lastRetry)
		if !f.since.IsZero() && time.Since(f.since) > lastRetry {
			s.pause = 0
		}
		s.notBefore = time.Now().Add(s.pause)
	}
	s.mu.Unlock()
	if !mine { // it was ended on purpose
		return
	}
	if rdb, ok := s.all.rdb.(*redis.ClusterClient); ok && !errors.Is(err, errFull) {
		rdb.ReloadState(ctx) // in the background
	}
	if !f.since.IsZero() {
		s.tellAll()
	}
}
