// Package share puts the commands of many goroutines into few round trips. It is for backends.
package share

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

const (
	// MaxFlights is how many round trips are under way before commands begin to share them.
	MaxFlights = 4
	// Most is how many commands share a round trip at most.
	Most = 128
	// Stuck is how long a round trip counts as one under way at most.
	Stuck = 250 * time.Millisecond
)

// ErrLeft is the error of a caller that has left while its command was under way. Its outcome is unknown.
var ErrLeft = errors.New("the caller left while its command was under way")

// Share has commands share round trips. A caller that finds fewer than MaxFlights under way sends its own command at once, by
// itself. Other commands gather until a round trip ends, and go together in the next one.
//
// A shared round trip belongs to no caller: it ends when the contexts of all of them have. One that takes long, since it waits
// for somebody or its connection is broken, does not count as one under way any more: it must not hold up others.
type Share[C, A any] struct {
	// Send makes a round trip for several commands, and sets what it says to each. A command that it says nothing to goes by
	// itself then.
	Send func(ctx context.Context, batch []*Part[C, A])
	// Apart says whether two commands cannot go together. The later one goes by itself, then.
	Apart func(a, b C) bool
	// Crowd is how many commands have to share a round trip for there to be one at a time from then on; 0 means never.
	Crowd int

	mu      sync.Mutex // protects the fields below
	flights int        // those that count
	last    int        // how many the last round trip was for
	waiting []*Part[C, A]
}

// Part is one command of a round trip.
type Part[C, A any] struct {
	Command C
	Answer  A
	Said    bool // Answer is the answer
	Err     error

	ctx  context.Context //nolint:containedctx // of its caller
	done chan struct{}   // closed when the above is set
}

// Do has c executed by alone, or with others. Of an error that matches driver.ErrNotSent nothing was sent.
func (s *Share[C, A]) Do(ctx context.Context, c C, alone func() (A, error)) (answer A, err error) {
	if s == nil {
		return alone()
	}
	if err := driver.NotSent(ctx.Err()); err != nil {
		return answer, err
	}
	s.mu.Lock()
	if s.flights < s.limit() && len(s.waiting) == 0 || slices.ContainsFunc(s.waiting, func(p *Part[C, A]) bool { return s.Apart(p.Command, c) }) {
		land := s.depart()
		s.mu.Unlock()
		defer land()
		return alone()
	}
	p := &Part[C, A]{Command: c, ctx: ctx, done: make(chan struct{})}
	s.waiting = append(s.waiting, p)
	s.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done():
		return answer, s.abandon(p)
	}
	if p.Err != nil || p.Said {
		return p.Answer, p.Err
	}
	return alone()
}

// limit is how many round trips may be under way. The caller holds the mutex.
func (s *Share[C, A]) limit() int {
	if s.Crowd > 0 && s.last >= s.Crowd {
		return 1
	}
	return MaxFlights
}

// abandon ends p for its caller, which cannot wait any more, and says whether it was sent.
func (s *Share[C, A]) abandon(p *Part[C, A]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, p)
	if i < 0 {
		return errors.Join(ErrLeft, p.ctx.Err())
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return driver.NotSent(p.ctx.Err())
}

// depart begins a flight that counts. What it returns ends it, and has the next one go. The caller holds the mutex.
func (s *Share[C, A]) depart() (land func()) {
	s.flights++
	landed := sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.flights--; len(s.waiting) > 0 && s.flights < s.limit() {
			go s.fly(s.depart(), s.take()) // only its callers wait for that goroutine
		}
	})
	late := time.AfterFunc(Stuck, landed)
	return func() { late.Stop(); landed() }
}

// take returns what goes next. The caller holds the mutex.
func (s *Share[C, A]) take() []*Part[C, A] {
	s.last = min(len(s.waiting), Most)
	batch := slices.Clone(s.waiting[:s.last])
	s.waiting = slices.Delete(s.waiting, 0, s.last)
	return batch
}

func (s *Share[C, A]) fly(land func(), batch []*Part[C, A]) {
	defer land()
	ctx, cancel := Outlive(batch, func(p *Part[C, A]) context.Context { return p.ctx })
	defer cancel()
	s.Send(ctx, batch)
	for _, p := range batch {
		close(p.done)
	}
}

// Outlive returns a context that ends when those of all these callers have ended, or their deadlines have passed. It has none of
// their values, since it may outlive each of them.
func Outlive[T any](callers []T, of func(T) context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	if last, ok := latest(callers, of); ok {
		ctx, cancel = context.WithDeadline(context.Background(), last)
	}
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
