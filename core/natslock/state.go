package natslock

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// entry is the last message of a key. One that was never there, or is forgotten, is nil.
type entry struct {
	key      string
	revision uint64
	time     time.Time // by the clock of the stream's leader
	value    string
	deleted  bool // by a client, or by the end of its TTL
}

// there says whether the key has a value.
func (e *entry) there() bool { return e != nil && !e.deleted }

// at is the revision that a write to the key has to expect.
func (e *entry) at() uint64 {
	if e == nil {
		return 0
	}
	return e.revision
}

// state is what stands at a name.
type state struct {
	lock  *entry
	is    lock      // what it says; zero if the name is free
	at    time.Time // by the server's clock: when the lock was written, or later, if somebody has asked
	asked time.Time // when it was asked, by our own clock; zero if it was not
	done  *entry    // the dedup marker, if the claim asks for it
	queue []waiter
	own   *waiter        // the claim's
	slots map[int]*entry // of the queue, those that were left, too
}

// waiter is one in the queue.
type waiter struct {
	record
	entry *entry
	slot  int
}

// look reads the state that a claim meets. Nobody is told that it has lost the name before the leader was asked. In a cluster
// the replica that answers may be a moment late, so nobody is told that somebody else has it, either.
func (s *Store) look(ctx context.Context, c driver.Claim, expected bool) (*state, error) {
	keys := []string{lockKey(c.Name), queueKeys(c.Name)}
	if c.Dedup > 0 {
		keys = append(keys, doneKey(c.Name, c.Scope))
	}
	entries, err := s.read(ctx, keys...)
	if err != nil {
		return nil, err
	}
	now := stateOf(c, entries)
	if err := s.time(ctx, c, now); err != nil {
		return nil, err
	}
	if !now.owned(c) && (expected || s.clustered() && !now.admits(c)) {
		lock, err := s.ask(ctx, lockKey(c.Name))
		if err != nil {
			return nil, err
		}
		if lock.at() > now.lock.at() {
			now.locked(lock)
			return now, s.time(ctx, c, now)
		}
	}
	return now, nil
}

// time asks for the server's time, if it matters to the claim who of several holders has ended, or how long the name
// stays taken.
func (s *Store) time(ctx context.Context, c driver.Claim, now *state) error {
	if !now.is.left() && (c.Exclusive() || !now.is.several()) {
		return nil
	}
	asked := time.Now()
	server, err := s.info(ctx)
	if err != nil {
		return err
	}
	now.asked = asked
	now.reach(server.TimeStamp)
	return nil
}

func stateOf(c driver.Claim, entries []*entry) *state {
	now := &state{slots: make(map[int]*entry)}
	for _, e := range entries {
		_, what, _ := strings.Cut(e.key, ".")
		kind, slot, _ := strings.Cut(what, ".")
		switch n, _ := strconv.Atoi(slot); kind {
		case "lock":
			now.locked(e)
		case "done":
			now.done = e
		case "queue":
			now.slots[n] = e
			if r := recordOf(e); e.there() && r.known() {
				now.queue = append(now.queue, waiter{r, e, n})
			}
		}
	}
	slices.SortFunc(now.queue, func(a, b waiter) int { return cmp.Compare(a.Order, b.Order) })
	if i := slices.IndexFunc(now.queue, func(w waiter) bool { return w.ID == digest(c.Token) }); i >= 0 {
		now.own = &now.queue[i]
	}
	return now
}

// locked sets the lock.
func (n *state) locked(e *entry) {
	n.lock, n.is, n.asked = e, lock{}, time.Time{}
	if e.there() {
		n.is = lockOf(e)
		n.reach(e.time)
	}
}

// reach says that the server's clock has come this far.
func (n *state) reach(at time.Time) {
	if at.After(n.at) {
		n.at = at
	}
}

// mine is the holder that c's token is, in the way that c asks for, or nil.
func (n *state) mine(c driver.Claim) *record {
	if n.is.left() || n.is.Kind != kindOf(c) {
		return nil
	}
	id := digest(c.Token)
	for i, h := range n.is.Holders {
		if h.ID == id && (!n.is.several() || h.left(n.at) > 0) {
			return &n.is.Holders[i]
		}
	}
	return nil
}

// owned says whether c's token has the name.
func (n *state) owned(c driver.Claim) bool { return n.mine(c) != nil }

// heads says whether nobody is in the queue before the claim.
func (n *state) heads() bool {
	return len(n.queue) == 0 || n.own != nil && n.queue[0].ID == n.own.ID
}

// awaits is what the claim's entry waits for: that the lock is freed, or that the entry before it goes.
func (n *state) awaits() string {
	if i := slices.IndexFunc(n.queue, func(w waiter) bool { return w.ID == n.own.ID }); i > 0 {
		return n.queue[i-1].ID
	}
	return lockFreed
}
