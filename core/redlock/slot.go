package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
)

// slot is a vote's at one node.
type slot struct {
	flying  int           // calls under way that may take the name
	waiting int           // calls under way that may put the entry into the queue
	queued  time.Time     // when one of those went unanswered, or was given up: zero if none has
	stray   time.Time     // when one of the others went unanswered: it may have been executed, or may be still; zero if none has
	granted bool          // the node has granted the name
	refused bool          // it has refused an attempt
	longest time.Duration // as it said then: see driver.Grant

	open     int           // calls under way that set a TTL, renewals too
	silent   time.Time     // when one of those went unanswered, last
	shortest time.Duration // the shortest TTL that one of them may still set

	asked   bool // it was asked for a release
	freeing bool // a release is under way
	again   bool // another one is to follow
	doubt   bool // one may have freed the name, and was not answered, or came before the end of a call under way
	tried   bool // one has ended since it was last asked for
	err     error
	left    outcome
}

// taken says whether the vote may be at the node.
func (s *slot) taken() bool { return s.granted || !s.stray.IsZero() }

// outcome is what a release came to at a node.
type outcome uint8

const (
	unknown outcome = iota
	freed
	absent // the node did not have it
)

// lingersAt says whether a vote that is over may be at a node, in its queue too, or may soon be: a call is under way there. For what went
// unanswered it says until when that may be there.
func (v *vote) lingersAt(i int) (lingers bool, stray time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	slot := &v.slots[i]
	unfreed := slot.left == unknown && (time.Since(v.used) < v.most || v.stands())
	if !slot.stray.IsZero() {
		stray = slot.stray.Add(v.most)
	}
	return slot.flying+slot.waiting > 0 || (slot.granted || v.rank > 0) && unfreed ||
		!slot.queued.IsZero() && time.Since(slot.queued) < driver.PlaceLife(v.most), stray
}

// launch counts calls at all nodes as under way before any is asked. So a node whose turn comes when others have
// decided is asked too. For how long each node stands if it grants the name says sends.
func (v *vote) launch(ttl time.Duration) (certain []time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.slots {
		v.slots[i].flying++
		certain = append(certain, v.sends(i, ttl))
	}
	return certain
}

// sends takes note of a call that sets a TTL at node i, and says for how much of it the node stands then: a quorum does not wait for all
// nodes, so an earlier call with a shorter TTL may come there later, and cut it short. Two processes would have the name
// then. The caller holds the mutex.
func (v *vote) sends(i int, ttl time.Duration) (certain time.Duration) {
	slot := &v.slots[i]
	if slot.open == 0 && time.Since(slot.silent) > v.most {
		slot.shortest = ttl
	}
	slot.shortest, v.most = min(slot.shortest, ttl), max(v.most, ttl)
	slot.open++
	return slot.shortest
}

// answered takes note of the outcome of such a call. The caller holds the mutex.
func (v *vote) answered(i int, err error) {
	v.slots[i].open--
	if driver.Explain(err).Open() {
		v.slots[i].silent = time.Now()
	}
}

// fly makes a call at node i, and deals with an outcome that nobody waits for any more. The caller has
// counted the slot as flying. Once the vote is over, nothing is asked.
func (v *vote) fly(i int, ask func() (driver.Grant, error)) (g driver.Grant, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err = driver.NotSent(errOver); !v.over {
		v.mu.Unlock()
		g, err = ask()
		v.mu.Lock()
	}
	slot := &v.slots[i]
	slot.flying--
	v.answered(i, err)
	if err == nil {
		slot.granted, slot.longest = true, g.Longest
	}
	open := driver.Explain(err).Open()
	if open {
		slot.stray = time.Now()
	}
	over := v.over || v.calls == 0 && v.granted && !v.stands() // not under a call that counts this grant: if it fails, it gives all of them back
	if over && (err == nil || open || slot.asked) {
		v.free(i)
	}
	if open && v.over {
		v.sweep(i, v.most)
	}
	return g, err
}

var errOver = errors.New("redlock: given up")

// waits waits in the queue of node i. The command that puts the entry there may come after the one that took it away.
// Then that one follows again.
func (v *vote) waits(i int, at func() error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over {
		return driver.NotSent(errOver)
	}
	slot := &v.slots[i]
	slot.waiting++
	v.mu.Unlock()
	err := at()
	v.mu.Lock()
	slot.waiting--
	if err == nil {
		err = errTurn
	}
	if driver.Explain(err).Open() {
		slot.queued = time.Now()
	}
	if v.over {
		v.free(i)
		v.sweepQueue(i)
	}
	return err
}

// refusedAt takes note that node i has refused an attempt of the vote. If that is won already, the node is asked again.
func (v *vote) refusedAt(i int) {
	v.mu.Lock()
	v.slots[i].refused = true
	won := v.granted
	v.mu.Unlock()
	if won {
		v.store.healSoon(v, i)
	}
}

// misses says whether the vote ought to be at node i, and is not.
func (v *vote) misses(i int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	slot := &v.slots[i]
	return !v.over && !slot.granted && (v.rank > 0 || slot.refused)
}

// sweep releases the vote at node i again and again, for as long as a command that went
// unanswered there may be executed yet. The caller holds the mutex, and the vote is over.
func (v *vote) sweep(i int, left time.Duration) {
	if left <= 0 {
		return
	}
	v.store.late[i].Add(sweep.Task{After: sweep.First, For: left, Clean: func(within time.Duration) sweep.Outcome {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		err := v.release(ctx, i)
		if err == nil || errors.Is(err, driver.ErrNotOwner) {
			return sweep.Answered
		}
		return sweep.Silent
	}})
}

// sweepQueue is sweep for a node where a command that puts the entry into the queue may be late. The caller holds the
// mutex.
func (v *vote) sweepQueue(i int) {
	if at := v.slots[i].queued; !at.IsZero() {
		v.sweep(i, driver.PlaceLife(v.most)-time.Since(at))
	}
}
