// Package sweep repeats the clean-up behind commands whose outcome nobody knows.
//
// A command whose answer never came may still be executed: the server was frozen, or the connection
// was slow to open. A clean-up that was sent after it, on another connection, can overtake it. It
// is then answered "not the owner", and the command takes the name afterwards. So the clean-up is
// repeated as long as the outcome is open.
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
	// First is the first pause between two clean-ups of a task, and the pause between two rounds.
	// Each later pause of a task is half of the time that has passed.
	First = 20 * time.Millisecond
	// longest is the longest pause within the first minute, so that what a late command takes is
	// given back within a second. After that a pause is an 80th of the time that has passed.
	longest = 750 * time.Millisecond
	// AtClose is for how long clean-up goes on after Close, when somebody waits for its end.
	AtClose = 250 * time.Millisecond
	// Many is how many clean-ups are under way at once while all are answered.
	Many = 16
	// Few is how many are under way at once after one was not answered, because they share
	// connections with renewals.
	Few = 4
	// round is how long one round begins new clean-ups, until it looks again for what is due, and mostRound how many.
	round, mostRound = 250 * time.Millisecond, int(round / every)
	// every is how far apart clean-ups are on average, when thousands are to be done. Repeated ones are twice as far
	// apart, so there is room for new tasks.
	every = 2 * time.Millisecond
	// glance is how long to wait for the first answer to a task, and patience how long to wait for
	// later ones. So tasks that cannot be reached soon stand behind tasks that can: 80 of them a
	// second keep nobody waiting. A server that is farther away than glance still executes what it
	// is sent.
	glance, patience = 50 * time.Millisecond, 750 * time.Millisecond
	// afterSilence is the pause before the next round if a round was broken off because of silence.
	afterSilence = 250 * time.Millisecond
	// least is for how long a task goes on while there is no answer, however soon its time is over: a clean-up can be lost, too.
	least = 2 * time.Second
	// most is how many tasks a Sweeper remembers. If there are more, as in an outage, what is
	// granted late lives for its TTL.
	most = 1 << 13
)

// Outcome is what a clean-up came to.
type Outcome uint8

// They are in the order in which tasks are asked.
const (
	Answered Outcome = iota
	Unsent           // nothing was sent, and nothing is known
	Silent
)

// Task is the clean-up behind one token, or behind one place in a queue.
type Task struct {
	// Clean cleans up once, within the given time.
	Clean func(within time.Duration) Outcome
	// Open says whether the outcome is still open. nil means that it always is.
	Open func() bool
	// After is when to clean up first.
	After time.Duration
	// For is how long it goes on. If there is no answer, it goes on for twice as long again, and for two seconds at least.
	For time.Duration
}

// Sweeper repeats tasks until their time is over. It has a goroutine while there are any.
type Sweeper struct {
	spawn func(func())
	added chan struct{} // of size one

	mu      sync.Mutex // protects the fields below
	tasks   []*task
	rested  time.Time // no round begins before
	hushed  bool      // something was not answered in the last round
	closed  bool
	running bool
}

// task is a Task under way. The Sweeper's mutex protects it, except that during a round one worker
// uses it alone.
type task struct {
	Task
	since  time.Time
	sent   time.Time // when it was last cleaned up
	next   time.Time // when to clean up again
	until  time.Time // the end, if the lock service answers: then nothing can come any more
	latest time.Time // the end in any case
	heard  Outcome   // the outcome of the last clean-up that was sent
}

// New returns a Sweeper that begins its goroutine with spawn. spawn should count the goroutine for
// those who wait for its end.
func New(spawn func(func())) *Sweeper {
	return &Sweeper{spawn: spawn, added: make(chan struct{}, 1)}
}

// Add begins a task. If there are too many, the task is forgotten.
func (s *Sweeper) Add(t Task) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tasks) >= most {
		return
	}
	added := &task{
		Task: t, since: now, next: now.Add(t.After), until: now.Add(t.For), latest: now.Add(max(3*t.For, least)), heard: Unsent,
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

// Close makes all tasks end after AtClose, and begin again with short pauses. Tasks that are added
// later do the same.
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

// hurry shortens t to AtClose from now. The caller holds the mutex.
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
	default: // it will look anyway
	}
}

func (s *Sweeper) run() {
	for {
		first, some := s.first()
		if !some {
			return
		}
		if s.told(time.Until(first)) {
			continue // something new may come first
		}
		s.sweep()
	}
}

// told waits. It says whether something new was added before the time was over.
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

// first says when something has to be done next. If there is nothing, the goroutine ends.
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
	began := time.Now()
	end := began.Add(round)
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
				if due[i].clean() && i > 0 { // the first may be one that has waited too long
					hush.Store(true)
				}
			}
		})
	}
	wg.Wait()
	asked := due[:min(int(at.Load()), len(due))]
	s.over(asked, hush.Load(), began.Add(time.Duration(len(asked))*every))
}

// clean cleans up once. If a task that was silent before is silent again, it ends the round, as after it come only such as were silent,
// too: more commands would only delay those that matter.
func (t *task) clean() (again bool) {
	within := patience
	if t.heard == Unsent {
		within = glance
	}
	t.sent = time.Now()
	switch heard := t.Clean(within); {
	case heard == Unsent:
	case heard == Silent && t.heard == Silent:
		return true
	default:
		t.heard = heard
	}
	return false
}

// due returns the tasks whose time has come, and how many of them to ask at once. First come tasks
// that were answered the last time, and then new ones; within a kind, those first that have waited
// longest. So one silent node of many does not keep the names of the others. A silent one that has waited too long is the very first.
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
	for i, t := range due {
		if t.heard == Silent && now.Sub(t.next) > patience {
			due = slices.Insert(slices.Delete(due, i, i+1), 0, t)
			break
		}
	}
	most := Many
	if s.hushed {
		most = Few
	}
	if !s.closed {
		due = due[:min(len(due), mostRound)]
	}
	return due, min(most, len(due))
}

// over ends a round in which the tasks of asked were asked, and after which no other begins before rested.
func (s *Sweeper) over(asked []*task, hush bool, rested time.Time) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	apart := 2 * every * time.Duration(len(s.tasks))
	s.rested = now.Add(First)
	switch {
	case s.closed:
		apart = 0
	case hush:
		s.rested = now.Add(afterSilence)
	case s.rested.Before(rested):
		s.rested = rested
	}
	s.hushed = false
	for _, t := range asked {
		s.hushed = s.hushed || t.heard == Silent
		t.next = now.Add(max(apart, pause(now.Sub(t.since))))
		if t.heard == Silent { // the wait for its answer was a pause already
			t.next = t.sent.Add(max(apart, pause(t.sent.Sub(t.since))))
		}
		if now.Before(t.until) && t.until.Before(t.next) {
			t.next = t.until
		}
	}
	s.tasks = slices.DeleteFunc(s.tasks, func(t *task) bool { return t.over(now) })
}

// over says whether t has ended. What comes at the last moment is cleaned up, too: so the last time is not before the end.
func (t *task) over(now time.Time) bool {
	if t.Open != nil && !t.Open() {
		return true
	}
	return t.heard == Answered && !t.sent.Before(t.until) || !now.Before(t.latest)
}

// pause is how long to wait if this much time has passed since the task began. It has jitter, so
// that processes do not fall into step.
func pause(passed time.Duration) time.Duration {
	d := max(min(max(passed/2, First), longest), passed/80)
	return d - rand.N(d/4) //nolint:gosec // G404: jitter is no secret
}
