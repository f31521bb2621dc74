package redislock

import (
	"context"
	"strings"
	"sync"
	"time"
)

// idleAfter is how long a subscription outlasts its last listener: a waiter listens again and
// again.
const idleAfter = 2 * time.Second

// subscriber is one subscription of a Store, to a channel of its own. On it, the scripts tell a place in a
// queue that its turn may have come. The subscription lasts while somebody listens.
//
// The messages are hints, except for grants, which name a look. If there can be no subscription, for want of a permission or a
// connection, waiters are queued all the same, and look more often.
type subscriber struct {
	all      *subscribers
	channels string // the beginning of the names of all clients' channels

	mu        sync.Mutex                          // protects the fields below
	feed      *feed                               // nil if there is none
	listeners map[string]map[chan string]struct{} // by place
	idle      *time.Timer
	pause     time.Duration // after the last feed, if it failed; else 0
	notBefore time.Time     // when that pause is over
}

func newSubscriber(all *subscribers, channels string) *subscriber {
	return &subscriber{all: all, channels: channels, listeners: make(map[string]map[chan string]struct{})}
}

// listen returns a channel of size one that gets the messages for a place.
func (s *subscriber) listen(place string) (heard <-chan string, leave func()) {
	wake := make(chan string, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners[place] == nil {
		s.listeners[place] = make(map[chan string]struct{})
	}
	s.listeners[place][wake] = struct{}{}
	if s.idle != nil {
		s.idle.Stop()
	}
	return wake, func() { s.leave(place, wake) }
}

// tells says whether the server is known to have the subscription. If so, listeners hear every
// message from then on. If there is no subscription, tells begins one, unless the last one has just
// failed.
func (s *subscriber) tells() bool { return s.subscription().tells() }

// await is tells, but gives a new subscription a moment, at most half of the time that ctx leaves.
// A waiter that is queued before the subscription is there has to look again.
func (s *subscriber) await(ctx context.Context) bool {
	f := s.subscription()
	if f == nil || f.tells() {
		return f.tells()
	}
	patience := time.Until(f.soon)
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-f.ready:
	case <-f.gone:
	case <-timer.C:
	case <-ctx.Done():
	}
	return f.tells()
}

// subscription returns the current feed, or a new one, or nil.
func (s *subscriber) subscription() *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feed == nil && !time.Now().Before(s.notBefore) {
		s.feed = s.open()
	}
	return s.feed
}

// tell passes on a message: a place, and \x1f and a grant if there is one.
func (s *subscriber) tell(message string) {
	place, grant, _ := strings.Cut(message, "\x1f")
	s.mu.Lock()
	defer s.mu.Unlock()
	for wake := range s.listeners[place] {
		hint(wake, grant)
	}
}

func (s *subscriber) tellAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, listeners := range s.listeners {
		for wake := range listeners {
			hint(wake, "")
		}
	}
}

func hint(wake chan<- string, grant string) {
	select {
	case wake <- grant:
	default: // an earlier one is still there; whoever tries then finds the grant
	}
}

// leave lets the subscription end some time after the last listener has gone.
func (s *subscriber) leave(place string, wake chan string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners[place], wake)
	if len(s.listeners[place]) == 0 {
		delete(s.listeners, place)
	}
	if len(s.listeners) > 0 || s.feed == nil {
		return
	}
	if s.idle == nil {
		s.idle = time.AfterFunc(idleAfter, s.rest)
	} else {
		s.idle.Reset(idleAfter)
	}
}

func (s *subscriber) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) == 0 {
		s.detach()
	}
}

// detach ends the subscription. s.mu is held.
func (s *subscriber) detach() {
	if s.feed == nil {
		return
	}
	if s.feed.tells() {
		s.pause = 0
	}
	s.feed.end()
	s.feed = nil
}

// close ends the subscription. If another Locker on the same Store still listens, it is woken to
// look again, and opens a new one.
func (s *subscriber) close() {
	s.mu.Lock()
	s.detach()
	if s.idle != nil {
		s.idle.Stop()
	}
	s.mu.Unlock()
	s.tellAll()
}
