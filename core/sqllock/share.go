package sqllock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

const (
	// maxFlights is how many statements of a kind are under way before claims begin to share them. Once
	// crowd claims have shared one, there is one at a time: a statement costs the server about as much as
	// ten more claims in it do.
	maxFlights = 4
	crowd      = 6
	// maxShare is how many claims share a statement at most.
	maxShare = 128
	// stuck is how long a statement counts as one under way at most.
	stuck = 250 * time.Millisecond
)

// share puts the claims of many goroutines into few statements, and so into few transactions. A caller
// that finds fewer than maxFlights under way sends its own statement at once, by itself. Other claims
// gather until a statement ends, and go together in the next one.
//
// A shared statement answers only what it can without waiting for a row. Claims that it does not answer
// are sent again, each by itself. It belongs to no caller: no caller's ctx ends it.
//
// A statement that takes long, since it waits for a row or its connection is broken, does not count as one under way any
// more: it must not hold up claims for other names.
type share struct {
	// send executes a statement for all, and sets the answers of those that it decides.
	send func(ctx context.Context, batch []*parcel) error

	mu      sync.Mutex // protects the fields below
	flights int        // those that count
	last    int        // how many the last statement was for
	waiting []*parcel
}

// flight is one statement under way.
type flight struct {
	late   *time.Timer // runs until it has landed
	counts bool        // protected by share.mu
}

// parcel is one claim that waits for a statement to share.
type parcel struct {
	ctx    context.Context
	claim  driver.Claim
	number int64
	said   bool // the statement has decided
	err    error
	sent   bool          // protected by share.mu
	done   chan struct{} // of size one
}

var errLeft = errors.New("sqllock: the caller left while its statement was under way")

// do has c decided by alone, or by a shared statement.
func (s *share) do(ctx context.Context, c driver.Claim, alone func() (int64, bool, error)) (number int64, decided bool, err error) {
	if s == nil {
		return alone()
	}
	s.mu.Lock()
	if s.flights < s.limit() && len(s.waiting) == 0 {
		f := s.depart()
		s.mu.Unlock()
		defer s.land(f)
		return alone()
	}
	if err := driver.NotSent(ctx.Err()); err != nil {
		s.mu.Unlock()
		return 0, false, err
	}
	p := &parcel{ctx: ctx, claim: c, done: make(chan struct{}, 1)}
	s.waiting = append(s.waiting, p)
	s.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done():
		return 0, false, s.abandon(p)
	}
	if p.err != nil || p.said {
		return p.number, p.said, p.err
	}
	return alone()
}

// limit is how many statements may be under way. The caller holds the mutex.
func (s *share) limit() int {
	if s.last >= crowd {
		return 1
	}
	return maxFlights
}

// abandon ends p for its caller, which cannot wait any more, and says whether it was sent.
func (s *share) abandon(p *parcel) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.sent {
		return errors.Join(errLeft, p.ctx.Err())
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(q *parcel) bool { return p == q })
	return driver.NotSent(p.ctx.Err())
}

// depart begins a flight. The caller holds the mutex.
func (s *share) depart() *flight {
	s.flights++
	f := &flight{counts: true}
	f.late = time.AfterFunc(stuck, func() { s.land(f) })
	return f
}

// land has a flight count no more, and the next statement go.
func (s *share) land(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.late.Stop()
	if f.counts {
		f.counts = false
		s.flights--
		s.launch()
	}
}

// launch sends what waits, if a statement may go. Only the callers of those claims wait for that goroutine. The caller
// holds the mutex.
func (s *share) launch() {
	if len(s.waiting) > 0 && s.flights < s.limit() {
		go s.fly(s.depart(), s.take())
	}
}

func (s *share) fly(f *flight, batch []*parcel) {
	defer s.land(f)
	ctx, cancel := outliving(batch)
	defer cancel()
	err := s.send(ctx, batch)
	for _, p := range batch {
		if !p.said {
			p.err = err
		}
		p.done <- struct{}{}
	}
}

// take returns the claims that go next, each name once. The caller holds the mutex.
func (s *share) take() (batch []*parcel) {
	names := make(map[string]bool, min(len(s.waiting), maxShare))
	s.waiting = slices.DeleteFunc(s.waiting, func(p *parcel) bool {
		if len(batch) == maxShare || names[p.claim.Name] {
			return false
		}
		names[p.claim.Name], p.sent = true, true
		batch = append(batch, p)
		return true
	})
	s.last = len(batch)
	return batch
}

func (p *parcel) caller() context.Context { return p.ctx }

// outliving returns a context that ends with the latest deadline among those that share a statement. It
// has none of their values, since it may outlive each of them.
func outliving[C interface{ caller() context.Context }](batch []C) (context.Context, context.CancelFunc) {
	var last time.Time
	for _, c := range batch {
		deadline, ok := c.caller().Deadline()
		if !ok {
			return context.WithCancel(context.Background())
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	return context.WithDeadline(context.Background(), last)
}
