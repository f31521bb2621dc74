package zklock

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
)

// node is what this Store has in the line for a name: a place that waits, or the owner. It
// is known before its znode is asked for, until that is certainly gone.
//
// A znode lives as long as its session, which may be for ever. So a node that nobody asks
// for any more is deleted by the Store that made it: a waiting one after driver.PlaceLife, an
// owner after its TTL, which is after core has ended its trust. A deletion that fails is
// tried again until the session is over.
type node struct {
	key   nodeKey       // by which it is found: its own; once granted, that of the owner's token
	id    string        // what the name of its znode begins with
	busy  chan struct{} // of size one: full while an operation works on the node
	timer *time.Timer   // for its deletion

	// Written by who is in busy and has Store.mu, so read by who has either.
	seat  string // the name of its znode, "" if there is none
	doubt bool   // a creation was not answered: there may be a znode, or that of a reader instead of seat
	owned bool   // by the token of key
	waits bool   // it stands in line, and goes on doing so when it is refused
	label string // on its ticket

	session int64 // that of the owner's znode

	// Protected by Store.mu.
	users  int       // who work on it or wait for busy
	until  time.Time // when it is to be deleted
	ending bool      // it is being deleted
	closed int       // how often in a row the connection looked closed by then
}

// nodeKey is a node's name, and where it stands in line, or the digest of its owner's token.
type nodeKey struct{ name, id string }

// retryAfter is how long after a failed deletion the next one is tried.
const retryAfter = 250 * time.Millisecond

// take has the caller work on the node for one of the given places or tokens, the first that
// there is; if there is none, on a new one for the last of them.
func (t *trip) take(name string, ids ...string) (*node, error) {
	for {
		n, found := t.enter(name, ids)
		select {
		case n.busy <- struct{}{}:
		case <-t.ctx.Done():
			t.exit(n)
			return nil, t.unsent(t.ctx.Err())
		}
		if t.has(n, found) {
			return n, nil
		}
		t.leave(n) // it went, or was granted, meanwhile
	}
}

func (s *store) enter(name string, ids []string) (n *node, key nodeKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		key = nodeKey{name, id}
		if n = s.nodes[key]; n != nil {
			break
		}
	}
	if n == nil {
		n = &node{key: key, id: key.id, busy: make(chan struct{}, 1)}
		n.timer = time.AfterFunc(time.Hour, func() { s.expire(n) })
		n.timer.Stop()
		s.nodes[key] = n
	}
	n.users++
	return n, key
}

func (s *store) has(n *node, key nodeKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[key] == n
}

// leave ends the caller's work on n.
func (s *store) leave(n *node) {
	<-n.busy
	s.exit(n)
}

func (s *store) exit(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.users--
	if n.users == 0 && n.seat == "" && !n.doubt && s.nodes[n.key] == n {
		n.timer.Stop()
		delete(s.nodes, n.key)
	}
}

// keep lets n live for d from now on.
func (s *store) keep(n *node, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.until, n.ending = time.Now().Add(d), false
	n.timer.Reset(d)
}

// sit says which znode n has; none if seat is empty. Nothing is in doubt any more.
func (s *store) sit(n *node, seat string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.seat, n.doubt = seat, false
	if seat == "" {
		n.owned, n.waits = false, false
	}
}

// elsewhere says whether another node than n has a znode: an owner's is named by the place that it once had.
func (s *store) elsewhere(n *node, seat string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, other := range s.nodes {
		if other != n && key.name == n.key.name && other.seat == seat {
			return true
		}
	}
	return false
}

// own makes n that of the token's, for ttl, with a znode of this session.
func (s *store) own(n *node, token string, ttl time.Duration, session int64) {
	s.keep(n, ttl)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, n.key)
	n.key.id, n.owned, n.waits, n.session = token, true, false, session
	s.nodes[n.key] = n
}

// expire deletes a node whose time is over, unless it was asked for again.
func (s *store) expire(n *node) {
	if !s.over(n) {
		return
	}
	n.busy <- struct{}{} // an operation under way ends, as its requests do
	defer s.leave(n)
	s.mu.Lock()
	wanted := !n.ending
	s.mu.Unlock()
	if wanted {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), retryAfter) // for a session that has ended meanwhile
	defer cancel()
	if _, err := (&trip{store: s, ctx: ctx}).remove(n); err != nil {
		s.keepTrying(n)
	}
}

// over says whether n is to be deleted now, by the caller, who then is among its users.
func (s *store) over(n *node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := time.Until(n.until)
	switch {
	case s.nodes[n.key] != n:
		return false
	case left > 0:
		n.timer.Reset(left)
		return false
	case s.connected():
		n.closed, n.ending = 0, true
		n.users++
		return true
	case s.conn.State() == zk.StateDisconnected && n.closed > 3:
		// A client that tries to connect is not in this state for long. This one was closed,
		// and its session ended with it.
		delete(s.nodes, n.key)
		return false
	default:
		n.closed++
		n.timer.Reset(retryAfter)
		return false
	}
}

// keepTrying has n deleted soon.
func (s *store) keepTrying(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.until, n.ending = time.Now(), true
	n.timer.Reset(retryAfter)
}
