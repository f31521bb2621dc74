package zklock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// node is what this Store has in the queue for a name: the entry of a token, or what was left for a hand-off. It
// is known before its znode is asked for, until that is certainly gone.
//
// A znode lives as long as its session, which may be for ever. So a node that nobody asks
// for any more is deleted by the Store that made it: a waiting one after driver.PlaceLife, an
// owner after its TTL, which is after core has ended its trust. A deletion that fails is
// tried again until the session is over.
type node struct {
	key
	busy  chan struct{} // of size one: full while an operation works on the node
	timer *time.Timer   // for its deletion

	// Written by who is in busy and has Store.mu, so read by who has either.
	znode string // its name, "" if there is none
	doubt bool   // there may be a znode that is not known here: a creation was not answered
	owned bool   // the token owns the name
	waits bool   // it is in the queue, and stays there when it is refused
	says  string // the data that the znode was created with, or its ticket since

	session int64 // that of the owner's znode

	// Protected by Store.mu.
	until  time.Time // when it is to be deleted
	ending bool      // it is being deleted
	closed int       // how often in a row the connection looked closed then
}

// key is a name, and a digest of the token or of the hand-off. The znode has the digest in its name.
type key struct{ name, id string }

// retryAfter is how long after a failed deletion the next one is tried.
const retryAfter = 250 * time.Millisecond

// take has the caller work on the node with this key. If there was none before, the new one is in doubt, or not.
func (t *call) take(name, id string, doubt bool) (*node, error) {
	for k := (key{name, id}); ; {
		n, mine := t.enter(k, doubt)
		if mine {
			return n, nil
		}
		select {
		case n.busy <- struct{}{}:
		case <-t.ctx.Done():
			return nil, t.unsent(t.ctx.Err())
		}
		var there bool
		if t.set(func() { there = t.nodes[k] == n }); there {
			return n, nil
		}
		<-n.busy // it went meanwhile
	}
}

// enter finds a node, or makes a new one, which is the caller's.
func (s *Store) enter(k key, doubt bool) (n *node, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[k]; n != nil {
		return n, false
	}
	n = &node{key: k, busy: make(chan struct{}, 1), doubt: doubt}
	n.busy <- struct{}{}
	n.timer = time.AfterFunc(time.Hour, func() { s.expire(n) })
	n.timer.Stop()
	s.nodes[k] = n
	return n, true
}

// leave ends the caller's work on n.
func (s *Store) leave(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.znode == "" && !n.doubt && s.nodes[n.key] == n {
		n.timer.Stop()
		delete(s.nodes, n.key)
	}
	<-n.busy
}

// keep lets n live for d from now on. The caller has Store.mu, as that of drop.
func (n *node) keep(d time.Duration) {
	n.until, n.ending = time.Now().Add(d), false
	n.timer.Reset(d)
}

// drop has n deleted after d, and retry soon.
func (n *node) drop(d time.Duration) {
	n.until, n.ending = time.Now(), true
	n.timer.Reset(d)
}

func (n *node) retry() { n.drop(retryAfter) }

// set changes what the mutex protects.
func (s *Store) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// sit says which znode n has; none if it is empty. Nothing is in doubt any more.
func (s *Store) sit(n *node, znode string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.znode, n.doubt = znode, false
	n.owned, n.waits = n.owned && znode != "", n.waits && znode != ""
}

// expire deletes a node whose time is over, unless it was asked for again.
func (s *Store) expire(n *node) {
	if !s.over(n) {
		return
	}
	defer s.leave(n)
	ctx, cancel := context.WithTimeout(context.Background(), retryAfter) // for a session that has ended meanwhile
	defer cancel()
	if _, err := (&call{Store: s, ctx: ctx}).remove(n); err != nil {
		s.set(n.retry)
	}
}

// over says whether n is to be deleted now, by the caller, who works on it then.
func (s *Store) over(n *node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := time.Until(n.until)
	switch {
	case s.nodes[n.key] != n:
		return false
	case left > 0:
		n.timer.Reset(left)
		return false
	case !s.connected():
		// A client that tries to connect is not in the last state for long. This one was closed,
		// and its session ended with it.
		if n.closed++; n.closed > 4 && s.conn.State() == zk.StateDisconnected {
			delete(s.nodes, n.key)
		} else {
			n.timer.Reset(retryAfter)
		}
		return false
	}
	select {
	case n.busy <- struct{}{}:
		n.closed, n.ending = 0, true
		return true
	default: // an operation under way ends, as its requests do
		n.timer.Reset(retryAfter / 10)
		return false
	}
}

// lookUp returns the queue for n's name, and settles whether n has a znode there.
func (t *call) lookUp(n *node) ([]string, error) {
	if n.doubt {
		// An answer that we have missed may be from a server that is ahead of the one that we
		// have now.
		err := t.read(func() error { _, err := t.conn.Sync(t.dir(n.name)); return err })
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
	}
	queue, err := t.queue(n.name)
	if err != nil {
		return nil, err
	}
	mine := slices.IndexFunc(queue, n.has)
	if mine < 0 {
		t.sit(n, "")
	} else {
		t.sit(n, queue[mine])
	}
	return queue, nil
}

// has says whether a znode is that of k.
func (k key) has(znode string) bool { return strings.Contains(znode, "-"+k.id+"-") }

// remove deletes n's znode, and says whether there was one.
func (t *call) remove(n *node) (bool, error) {
	if n.doubt {
		if _, err := t.lookUp(n); err != nil {
			return false, err
		}
	}
	if n.znode == "" {
		return false, nil
	}
	err := t.end(n.name, n.znode, -1)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	t.sit(n, "")
	return err == nil, nil
}

// end deletes a znode of a name.
func (t *call) end(name, znode string, version int32) error {
	defer t.unused(name)
	return t.write(func() error { return t.conn.Delete(t.dir(name)+"/"+znode, version) })
}
