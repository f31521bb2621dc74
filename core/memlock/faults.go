package memlock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// faults are what a test has the service, and the way to it, suffer from.
type faults struct {
	down  atomic.Bool
	delay atomic.Int64
	drops atomic.Int64 // replies to lose yet
}

var errDown = fmt.Errorf("memlock: %w, as SetDown has it: %w", driver.ErrCannotAnswer, driver.ErrNotSent)

// SetDown says whether the service is down, for tests of what a program does then: every call
// fails at once, as where nothing listens, and nothing is executed. What the service keeps, it
// keeps; leases run out. By default it is up.
func (s *Store) SetDown(down bool) { s.faults.down.Store(down) }

// SetDelay has every call take d before it is executed. One whose context ends earlier is not
// executed, and its caller cannot know: so a long delay is a network that drops everything. The
// default is 0. What waits already waits on.
func (s *Store) SetDelay(d time.Duration) { s.faults.delay.Store(int64(d)) }

// DropReplies has the next n calls that acquire, renew or release, by whatever name, executed and
// not answered: their callers hear nothing until their context ends, and cannot know. A repeat
// replaces what is left of n; 0, the default, drops none.
func (s *Store) DropReplies(n int) { s.faults.drops.Store(int64(n)) }

// Lose has the service forget who holds the name, as a failover or an operator's DEL does: its
// holders lose their leases when they next ask, and the name is free for the next one. Dedup
// markers and those who wait stay. Of a name that nobody holds, it does nothing.
func (s *Store) Lose(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.locks, name)
	s.tellFirst(name, time.Now())
}

// StolenFor is how long [Store.Steal] takes a name for: a default TTL that nobody renews.
const StolenFor = 10 * time.Second

// Steal has another owner take the name, whoever holds it: its holders lose their leases when they
// next ask, and everybody is refused for [StolenFor], or until [Store.Lose]. It returns the
// thief's fence, larger than all before it, for tests of what a resource refuses.
func (s *Store) Steal(name string) (fence uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.sweep(now)
	grant := driver.Grant{Fence: s.mint(now, 1), Fences: 1}
	const token = "thief" // nobody's: those of core are longer
	s.locks[name] = &lock{token: token, grant: grant, expires: now.Add(StolenFor)}
	return grant.Fence
}

// reach is a call's way to the service.
func (s *Store) reach(ctx context.Context) error {
	if err := unsent(ctx); err != nil {
		return err
	}
	if d := time.Duration(s.faults.delay.Load()); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.faults.down.Load() {
		return errDown
	}
	return nil
}

// answer is the way back: an error means that the reply is lost.
func (s *Store) answer(ctx context.Context) error {
	for n := s.faults.drops.Load(); n > 0; n = s.faults.drops.Load() {
		if s.faults.drops.CompareAndSwap(n, n-1) {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	return nil
}
