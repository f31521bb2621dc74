package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
)

// seat is a ballot's at one node.
type seat struct {
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

// taken says whether the ballot may be at the node.
func (s *seat) taken() bool { return s.granted || !s.stray.IsZero() }

// outcome is what a release came to at a node.
type outcome uint8

const (
	unknown outcome = iota
	freed
	absent // the node did not have it
)

// lingersAt says whether a ballot that is over may be at a node, in its queue too, or may soon be: a call is under way there. For what went
// unanswered it says until when that may be there.
func (b *ballot) lingersAt(i int) (lingers bool, stray time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seat := &b.seats[i]
	unfreed := seat.left == unknown && (time.Since(b.used) < b.most || b.stands())
	if !seat.stray.IsZero() {
		stray = seat.stray.Add(b.most)
	}
	return seat.flying+seat.waiting > 0 || (seat.granted || b.rank > 0) && unfreed ||
		!seat.queued.IsZero() && time.Since(seat.queued) < driver.PlaceLife(b.most), stray
}

// launch counts calls at all nodes as under way before any is asked. So a node whose turn comes when others have
// decided is asked too. For how long each node stands if it grants the name says sends.
func (b *ballot) launch(ttl time.Duration) (certain []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.seats {
		b.seats[i].flying++
		certain = append(certain, b.sends(i, ttl))
	}
	return certain
}

// sends takes note of a call that sets a TTL at node i, and says for how much of it the node stands then: a quorum does not wait for all
// nodes, so an earlier call with a shorter TTL may come there later, and cut it short. Two processes would have the name
// then. The caller holds the mutex.
func (b *ballot) sends(i int, ttl time.Duration) (certain time.Duration) {
	seat := &b.seats[i]
	if seat.open == 0 && time.Since(seat.silent) > b.most {
		seat.shortest = ttl
	}
	seat.shortest, b.most = min(seat.shortest, ttl), max(b.most, ttl)
	seat.open++
	return seat.shortest
}

// answered takes note of the outcome of such a call. The caller holds the mutex.
func (b *ballot) answered(i int, err error) {
	b.seats[i].open--
	if driver.Explain(err).Open() {
		b.seats[i].silent = time.Now()
	}
}

// fly makes a call at node i, and deals with an outcome that nobody waits for any more. The caller has
// counted the seat as flying. Once the ballot is over, nothing is asked.
func (b *ballot) fly(i int, ask func() (driver.Grant, error)) (g driver.Grant, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err = driver.NotSent(errOver); !b.over {
		b.mu.Unlock()
		g, err = ask()
		b.mu.Lock()
	}
	seat := &b.seats[i]
	seat.flying--
	b.answered(i, err)
	if err == nil {
		seat.granted, seat.longest = true, g.Longest
	}
	open := driver.Explain(err).Open()
	if open {
		seat.stray = time.Now()
	}
	over := b.over || b.calls == 0 && b.granted && !b.stands() // not under a call that counts this grant: if it fails, it gives all of them back
	if over && (err == nil || open || seat.asked) {
		b.free(i)
	}
	if open && b.over {
		b.sweep(i, b.most)
	}
	return g, err
}

var errOver = errors.New("redlock: given up")

// waits waits in the queue of node i. The command that puts the entry there may come after the one that took it away.
// Then that one follows again.
func (b *ballot) waits(i int, at func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return driver.NotSent(errOver)
	}
	seat := &b.seats[i]
	seat.waiting++
	b.mu.Unlock()
	err := at()
	b.mu.Lock()
	seat.waiting--
	if err == nil {
		err = errTurn
	}
	if driver.Explain(err).Open() {
		seat.queued = time.Now()
	}
	if b.over {
		b.free(i)
		b.sweepQueue(i)
	}
	return err
}

// refusedAt takes note that node i has refused an attempt of the ballot. If that is won already, the node is asked again.
func (b *ballot) refusedAt(i int) {
	b.mu.Lock()
	b.seats[i].refused = true
	won := b.granted
	b.mu.Unlock()
	if won {
		b.store.healSoon(b, i)
	}
}

// misses says whether the ballot ought to be at node i, and is not.
func (b *ballot) misses(i int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	seat := &b.seats[i]
	return !b.over && !seat.granted && (b.rank > 0 || seat.refused)
}

// sweep releases the ballot at node i again and again, for as long as a command that went
// unanswered there may be executed yet. The caller holds the mutex, and the ballot is over.
func (b *ballot) sweep(i int, left time.Duration) {
	if left <= 0 {
		return
	}
	b.store.late[i].Add(sweep.Task{After: sweep.First, For: left, Clean: func(within time.Duration) sweep.Outcome {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		err := b.release(ctx, i)
		if err == nil || errors.Is(err, driver.ErrNotOwner) {
			return sweep.Answered
		}
		return sweep.Silent
	}})
}

// sweepQueue is sweep for a node where a command that puts the entry into the queue may be late. The caller holds the
// mutex.
func (b *ballot) sweepQueue(i int) {
	if at := b.seats[i].queued; !at.IsZero() {
		b.sweep(i, driver.PlaceLife(b.most)-time.Since(at))
	}
}
