// Package share puts the commands of many goroutines into few round trips. It is for backends.
package share

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

const (
	// MaxAlone is how many commands go by themselves at the same time before others share round trips.
	MaxAlone = 4
	// Most is how many commands share a round trip at most.
	Most = 128
	// Stuck is how long commands wait for a round trip to share at most.
	Stuck = 250 * time.Millisecond
)

// ErrLeft is the error of a caller that has left while its command was under way. Its outcome is unknown.
var ErrLeft = errors.New("the caller left while its command was under way")

// Share has commands share round trips. A caller that finds fewer than MaxAlone under way, and no others who share one, sends its
// own command at once, by itself. Other commands gather until a round trip ends. Each that begins takes its part of all that there
// are, so that the service works for one while we work for another.
//
// A shared round trip belongs to no caller: it ends when the contexts of all of them have. Those that take long, since they wait
// for somebody or their connection is broken, do not count as under way any more: they must not hold up others.
type Share[C, A any] struct {
	// Alone makes a round trip for one command, and Send for several; it sets what that says to each. A command that it says
	// nothing to goes by itself then.
	Alone func(ctx context.Context, c C) (A, error)
	Send  func(ctx context.Context, batch []*Part[C, A])
	// Apart says whether two commands cannot go together: the later one goes by itself. nil means that all can.
	Apart func(a, b C) bool
	// Flights is how many round trips share so many commands, if the shortest one of late has taken so long; nil means one at a time.
	Flights func(commands int, trip time.Duration) int

	spare sync.Pool // of *Part

	mu      sync.Mutex // protects the fields below
	trip    shortest
	era     int // only the round trips of the present one count
	flights int
	shared  int // how many of them are shared
	riding  int // commands in those
	waiting []*Part[C, A]
	hurry   *time.Timer // runs while anything waits
}

// Part is one command of a round trip.
type Part[C, A any] struct {
	Command C
	Answer  A
	Said    bool // Answer is the answer
	Err     error

	ctx  context.Context //nolint:containedctx // of its caller
	sent bool            // protected by Share.mu
	done chan struct{}   // of size one
}

// Do has c executed by itself, or with others. Of an error that matches driver.ErrNotSent nothing was sent.
func (s *Share[C, A]) Do(ctx context.Context, c C) (answer A, err error) {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return answer, err
	}
	s.mu.Lock()
	if s.flights < MaxAlone && s.shared == 0 && len(s.waiting) == 0 || s.apart(c) {
		era := s.era
		s.flights++
		s.mu.Unlock()
		defer s.landed(era)
		return s.Alone(ctx, c)
	}
	p := s.join(ctx, c)
	s.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done(): // p is not used again: its answer may still come
		return answer, s.abandon(p)
	}
	answer, err, said := p.Answer, p.Err, p.Said
	*p = Part[C, A]{done: p.done}
	s.spare.Put(p)
	if err != nil || said {
		return answer, err
	}
	return s.Alone(ctx, c)
}

// apart says whether c cannot go with what waits. The caller holds the mutex.
func (s *Share[C, A]) apart(c C) bool {
	return s.Apart != nil && slices.ContainsFunc(s.waiting, func(p *Part[C, A]) bool { return s.Apart(p.Command, c) })
}

// join has c wait for a round trip. The caller holds the mutex.
func (s *Share[C, A]) join(ctx context.Context, c C) *Part[C, A] {
	p, _ := s.spare.Get().(*Part[C, A])
	if p == nil {
		p = &Part[C, A]{done: make(chan struct{}, 1)}
	}
	p.Command, p.ctx = c, ctx
	s.waiting = append(s.waiting, p)
	if len(s.waiting) == 1 {
		s.setHurry()
	}
	return p
}

// abandon ends p for its caller, which cannot wait any more, and says whether it was sent.
func (s *Share[C, A]) abandon(p *Part[C, A]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.sent {
		return errors.Join(ErrLeft, p.ctx.Err())
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(q *Part[C, A]) bool { return p == q })
	return driver.NotSent(p.ctx.Err())
}

// landed ends a caller's own flight. Commands that have gathered meanwhile go out on a goroutine, which exists as long as there
// are more. Only the callers of those commands wait for it.
func (s *Share[C, A]) landed(era int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if era == s.era {
		s.flights--
	}
	if len(s.waiting) > 0 && s.shared < s.most() {
		s.begin()
	}
}

// begin begins a flight that commands share. The caller holds the mutex.
func (s *Share[C, A]) begin() {
	s.flights++
	s.shared++
	go s.fly(s.era)
}

// most is how many flights all commands share. The caller holds the mutex.
func (s *Share[C, A]) most() int {
	if s.Flights == nil {
		return 1
	}
	return s.Flights(len(s.waiting)+s.riding, s.trip.ofLate())
}

// fly makes round trips while there are commands. Most of those who have their answers send again at once. It lets them run before
// it takes what goes next.
func (s *Share[C, A]) fly(era int) {
	for batch := s.take(era); batch != nil; batch = s.take(era) {
		ctx, cancel := Outlive(batch, func(p *Part[C, A]) context.Context { return p.ctx })
		began := time.Now()
		s.Send(ctx, batch)
		took := time.Since(began)
		cancel()
		s.arrived(era, len(batch), took)
		for _, p := range batch {
			p.done <- struct{}{}
		}
		runtime.Gosched()
		runtime.Gosched()
	}
}

// arrived says that n commands have their answers, and before their callers do: nobody is counted twice.
func (s *Share[C, A]) arrived(era, n int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if era == s.era {
		s.riding -= n
		s.trip.add(took)
	}
}

// take returns the commands that go next. If there are none, or the flight counts no more, it returns nil and ends the flight.
func (s *Share[C, A]) take(era int) []*Part[C, A] {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case era != s.era:
		return nil
	case len(s.waiting) == 0 || s.shared > s.most():
		s.flights--
		s.shared--
		if len(s.waiting) == 0 {
			s.waiting = nil
		}
		return nil
	}
	most := s.most()
	n := min(len(s.waiting), Most, (len(s.waiting)+s.riding+most-1)/most)
	batch := s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	s.riding += n
	for _, p := range batch {
		p.sent = true
	}
	s.setHurry()
	if len(s.waiting) > 0 && s.shared < most {
		s.begin()
	}
	return batch
}

// setHurry sets the timer that sends what waits if no round trip ends for too long. The caller holds the mutex.
func (s *Share[C, A]) setHurry() {
	switch {
	case s.hurry == nil:
		s.hurry = time.AfterFunc(Stuck, s.overtake)
	case len(s.waiting) == 0:
		s.hurry.Stop()
	default:
		s.hurry.Reset(Stuck)
	}
}

// overtake sends what has waited for too long. What is under way does not count any more.
func (s *Share[C, A]) overtake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 {
		s.era++
		s.flights, s.shared, s.riding = 0, 0, 0
		s.begin()
	}
}

// shortest is the shortest of the last 64 to 128 durations: how far away the service is, however busy it is, or we.
type shortest struct {
	n           int
	now, before time.Duration // of this window, and of the one before it
}

const window = 64

func (s *shortest) add(d time.Duration) {
	if s.n%window == 0 {
		s.before, s.now = s.now, d
	}
	s.n++
	s.now = min(s.now, d)
}

// ofLate is 0 as long as there was none.
func (s *shortest) ofLate() time.Duration {
	if s.n <= window {
		return s.now
	}
	return min(s.now, s.before)
}

// Outlive returns a context that ends when the deadlines of all these callers have passed, or, if one of them has none, when the
// contexts of all have ended. It has none of their values, since it may outlive each of them.
func Outlive[T any](callers []T, of func(T) context.Context) (context.Context, context.CancelFunc) {
	if last, ok := latest(callers, of); ok {
		return context.WithDeadline(context.Background(), last)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var left atomic.Int64
	left.Store(int64(len(callers)))
	stops := make([]func() bool, len(callers))
	for i, c := range callers {
		stops[i] = context.AfterFunc(of(c), func() {
			if left.Add(-1) == 0 {
				cancel() // nobody is left who could use what it gets
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// latest is the latest of their deadlines, if all have one.
func latest[T any](callers []T, of func(T) context.Context) (last time.Time, ok bool) {
	for _, c := range callers {
		deadline, ok := of(c).Deadline()
		if !ok {
			return last, false
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	return last, true
}
