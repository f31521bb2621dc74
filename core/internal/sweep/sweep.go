// Package sweep repeats the clean-up behind commands whose outcome nobody knows.
//
// A command whose answer never came may be executed yet: by a server that was frozen, or when a
// connection that was slow to open has come through. A clean-up that followed it on another
// connection may have been answered "not the owner" by then: it was there first. So as long as an
// outcome is open, clean-up is repeated.
package sweep

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// First is the first pause between two clean-ups; each further one is half of the time that
	// has passed. It lies between two rounds, too.
	First = 20 * time.Millisecond
	// longest is the longest pause within a minute: what a late command takes is given back
	// within a second. Later a pause is an 80th of the time that has passed.
	longest = 750 * time.Millisecond
	// AtClose is for how long clean-up goes on once somebody waits for its end.
	AtClose = 250 * time.Millisecond
	// Many is how many clean-ups are under way at once while all are answered.
	Many = 16
	// Few is how many after one was not: they share connections with renewals.
	Few = 4
	// round is how long one takes at most, until it looks what is due again.
	round = 250 * time.Millisecond
	// glance is how long the first answer to a task is waited for, and patience how long the
	// others are. So what cannot be reached soon stands behind what can: 80 a second of it keep
	// nobody waiting. A server that is farther away executes what it is sent all the same.
	glance, patience = 50 * time.Millisecond, 750 * time.Millisecond
	// afterSilence is how long the next round waits when one was not answered.
	afterSilence = 250 * time.Millisecond
	// most is how many tasks a Sweeper remembers. Beyond that, as in an outage, what is granted
	// late lives for its TTL.
	most = 1 << 13
)

// Outcome is what a clean-up came to.
type Outcome uint8

// They are in the order in which tasks are due.
const (
	Answered Outcome = iota
	Unsent           // nothing was sent, and nothing is known
	Silent
)

// Task is the clean-up behind one token, or one place in line.
type Task struct {
	// Clean cleans up once, within the given time.
	Clean func(within time.Duration) Outcome
	// Open says whether the outcome is open still. Nil means that it will be, whatever comes.
	Open func() bool
	// After is when to clean up first.
	After time.Duration
	// For is how long it goes on; and twice as long again while there is no answer.
	For time.Duration
}

// Sweeper repeats tasks until their time is over. It has a goroutine while there are any.
type Sweeper struct {
	spawn func(func())
	added chan struct{} // of size one

	mu      sync.Mutex // protects the fields below
	tasks   []*task
	rested  time.Time // no round before
	hushed  bool      // in the last round something was not answered
	closed  bool
	running bool
}

// task is a Task under way. The mutex protects it, except from the worker that it is with.
type task struct {
	Task
	since  time.Time
	sent   time.Time // when it was cleaned up last
	next   time.Time // when to clean up again
	until  time.Time // then nothing can come any more, if the lock service answers
	latest time.Time // and then in any case
	heard  Outcome   // of the last one that was sent
}

// New returns a Sweeper whose goroutine is begun by spawn, which should count it for whoever
// waits for its end.
func New(spawn func(func())) *Sweeper {
	return &Sweeper{spawn: spawn, added: make(chan struct{}, 1)}
}

// Add begins a task. If there are too many it is forgotten.
func (s *Sweeper) Add(t Task) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tasks) >= most {
		return
	}
	added := &task{
		Task: t, since: now, next: now.Add(t.After), until: now.Add(t.For), latest: now.Add(3 * t.For), heard: Unsent,
	}
	if s.closed {
		s.hurry(added, now)
	}
	s.tasks = append(s.tasks, added)
	if !s.running {
		s.running = true
		s.spawn(s.run)
	}
	s.wake()
}

// Close has all tasks end after AtClose, and begin anew with short pauses. So do those that are
// added later.
func (s *Sweeper) Close() {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, t := range s.tasks {
		s.hurry(t, now)
	}
	s.wake()
}

func (s *Sweeper) hurry(t *task, now time.Time) {
	end := now.Add(AtClose)
	if end.Before(t.until) {
		t.since, t.next, t.until = now, now, end
	}
	t.latest = t.until
}

func (s *Sweeper) wake() {
	select {
	case s.added <- struct{}{}:
	default: // it looks anyway
	}
}

func (s *Sweeper) run() {
	for {
		first, some := s.first()
		if !some {
			return
		}
		if wait := time.Until(first); wait > 0 && s.told(wait) {
			continue // there may be something that comes first
		}
		s.sweep()
	}
}

// told waits, and says whether it was told of something new before the time was over.
func (s *Sweeper) told(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-s.added:
		return true
	}
}

// first says when something is to be done next. If nothing is, the goroutine ends.
func (s *Sweeper) first() (at time.Time, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if !some || t.next.Before(at) {
			at, some = t.next, true
		}
	}
	s.running = some
	if at.Before(s.rested) {
		at = s.rested
	}
	return at, some
}

// sweep is one round.
func (s *Sweeper) sweep() {
	due, atOnce := s.due()
	end := time.Now().Add(round)
	var at atomic.Int32
	var hush atomic.Bool
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for !hush.Load() && time.Now().Before(end) {
				i := int(at.Add(1)) - 1
				if i >= len(due) {
					return
				}
				due[i].clean(&hush)
			}
		})
	}
	wg.Wait()
	asked := due[:min(int(at.Load()), len(due))]
	s.over(asked, hush.Load())
}

// clean cleans up once. Where one that was silent before is so again, the round is over: more
// commands would only stand in the way of those that matter.
func (t *task) clean(hush *atomic.Bool) {
	within := patience
	if t.heard == Unsent {
		within = glance
	}
	t.sent = time.Now()
	switch heard := t.Clean(within); {
	case heard == Unsent:
	case heard == Silent && t.heard == Silent:
		hush.Store(true)
	default:
		t.heard = heard
	}
}

// due returns the tasks whose time has come, and how many of them are to be asked at once. First
// come those that were answered the last time, then those that are new, and of the same kind
// those that have waited longest. So one silent node of many does not keep what others have.
func (s *Sweeper) due() (due []*task, atOnce int) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if !t.next.After(now) {
			due = append(due, t)
		}
	}
	slices.SortStableFunc(due, func(a, b *task) int {
		return cmp.Or(cmp.Compare(a.heard, b.heard), a.next.Compare(b.next))
	})
	for i, t := range due { // but one of those that were silent, if it waits for too long
		if t.heard == Silent && now.Sub(t.next) > patience {
			due = slices.Insert(slices.Delete(due, i, i+1), 0, t)
			break
		}
	}
	most := Many
	if s.hushed {
		most = Few
	}
	return due, min(most, len(due))
}

// over ends a round in which so many were asked.
func (s *Sweeper) over(asked []*task, hush bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rested = now.Add(First)
	if hush && !s.closed {
		s.rested = now.Add(afterSilence)
	}
	s.hushed = false
	for _, t := range asked {
		s.hushed = s.hushed || t.heard == Silent
		t.next = now.Add(pause(now.Sub(t.since)))
		if t.heard == Silent { // the wait for its answer was a pause
			t.next = t.sent.Add(pause(t.sent.Sub(t.since)))
		}
		if now.Before(t.until) && t.until.Before(t.next) {
			t.next = t.until
		}
	}
	s.tasks = slices.DeleteFunc(s.tasks, func(t *task) bool { return t.over(now) })
}

func (t *task) over(now time.Time) bool {
	if t.Open != nil && !t.Open() {
		return true
	}
	return !now.Before(t.until) && (t.heard == Answered || !now.Before(t.latest))
}

// pause is how long to wait when so much has passed since the task began: with jitter, so that
// processes do not fall into step.
func pause(passed time.Duration) time.Duration {
	d := max(min(max(passed/2, First), longest), passed/80)
	return d - rand.N(d/4) //nolint:gosec // G404: jitter is no secret
}
