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

// hub is one subscription of a Store, to a channel of its own. On it, the scripts tell a place in a
// queue that its turn may have come. The subscription lasts while somebody listens.
//
// The messages are hints, except for grants, which name a look. If there can be no subscription, for want of a permission or a
// connection, waiters are queued all the same, and look more often.
type hub struct {
	all      *hubs
	channels string // the beginning of the names of all clients' channels

	mu        sync.Mutex                          // protects the fields below
	feed      *feed                               // nil if there is none
	listeners map[string]map[chan string]struct{} // by place
	idle      *time.Timer
	pause     time.Duration // after the last feed, if it failed; else 0
	notBefore time.Time     // when that pause is over
}

func newHub(all *hubs, channels string) *hub {
	return &hub{all: all, channels: channels, listeners: make(map[string]map[chan string]struct{})}
}

// listen returns a channel of size one that gets the messages for a place.
func (h *hub) listen(place string) (heard <-chan string, leave func()) {
	wake := make(chan string, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners[place] == nil {
		h.listeners[place] = make(map[chan string]struct{})
	}
	h.listeners[place][wake] = struct{}{}
	if h.idle != nil {
		h.idle.Stop()
	}
	return wake, func() { h.leave(place, wake) }
}

// tells says whether the server is known to have the subscription. If so, listeners hear every
// message from then on. If there is no subscription, tells begins one, unless the last one has just
// failed.
func (h *hub) tells() bool { return h.subscription().tells() }

// await is tells, but gives a new subscription a moment, at most half of the time that ctx leaves.
// A waiter that is queued before the subscription is there has to look again.
func (h *hub) await(ctx context.Context) bool {
	f := h.subscription()
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
func (h *hub) subscription() *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.feed == nil && !time.Now().Before(h.notBefore) {
		h.feed = h.open()
	}
	return h.feed
}

// tell passes on a message: a place, and \x1f and a grant if there is one.
func (h *hub) tell(message string) {
	place, grant, _ := strings.Cut(message, "\x1f")
	h.mu.Lock()
	defer h.mu.Unlock()
	for wake := range h.listeners[place] {
		hint(wake, grant)
	}
}

func (h *hub) tellAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, listeners := range h.listeners {
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
func (h *hub) leave(place string, wake chan string) {
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
	defer h.mu.Unlock()
	if len(h.listeners) == 0 {
		h.detach()
	}
}

// detach ends the subscription. h.mu is held.
func (h *hub) detach() {
	if h.feed == nil {
		return
	}
	if h.feed.tells() {
		h.pause = 0
	}
	h.feed.end()
	h.feed = nil
}

// close ends the subscription. If another Locker on the same Store still listens, it is woken to
// look again, and opens a new one.
func (h *hub) close() {
	h.mu.Lock()
	h.detach()
	if h.idle != nil {
		h.idle.Stop()
	}
	h.mu.Unlock()
	h.tellAll()
}
