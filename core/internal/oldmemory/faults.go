package memlock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// faults are what a test has the service, and the way to it, suffer from.
type faults struct {
	down  atomic.Bool
	delay atomic.Int64
	drops atomic.Int64 // replies to lose yet
}

var errDown = fmt.Errorf("memlock: %w, as SetDown has it: %w", driver.ErrCannotAnswer, driver.ErrNotSent)

// SetDown says whether the service is down. While it is down, every call fails at once, as if nothing
// listened, and nothing is executed. The service keeps its data, and leases run out. By default it is
// up.
func (s *Store) SetDown(down bool) { s.faults.down.Store(down) }

// SetDelay delays every call by d before it is executed. A call whose context ends earlier is not
// executed, and its caller cannot know that. So a long delay acts like a network that drops
// everything. The default is 0. Callers that already wait for their turn are not affected.
func (s *Store) SetDelay(d time.Duration) { s.faults.delay.Store(int64(d)) }

// DropReplies loses the replies of the next n calls that acquire, renew or release, for any name. The
// calls are executed, but their callers get no answer until their context ends. If it is called
// again, the new n replaces the rest of the old one. 0, the default, drops none.
func (s *Store) DropReplies(n int) { s.faults.drops.Store(int64(n)) }

// Lose makes the service forget who holds the name, like a failover or an operator's DEL. The holders
// lose their leases when they next ask, and the name is free for the next caller. Dedup markers and
// waiters stay. If nobody holds the name, it does nothing.
func (s *Store) Lose(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.locks, name)
	s.serve(name, time.Now())
}

// StolenFor is how long [Store.Steal] takes a name: the default TTL, without renewal.
const StolenFor = 10 * time.Second

// Steal gives the name to another owner, whoever holds it. The holders lose their leases when they
// next ask. Every caller is refused for [StolenFor], or until [Store.Lose]. It returns the fence of
// the new owner, which is larger than all fences before it. Use it to test what a resource refuses.
func (s *Store) Steal(name string) (fence uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.sweep(now)
	grant := driver.Grant{Fence: s.mint(now, 1), Fences: 1}
	const token = "thief" // nobody's: those of core are longer
	s.locks[name] = &lock{token: token, grant: grant, since: now, expires: now.Add(StolenFor)}
	return grant.Fence
}

// reach is a call's way to the service.
func (s *Store) reach(ctx context.Context) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
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
