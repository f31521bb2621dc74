package migration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

// CertmagicStorage is a certmagic.Storage whose files are another one's and whose locks are
// Holdfast's.
//
//	storage := NewCertmagicStorage(&certmagic.FileStorage{Path: shared}, locks)
//
// A lock becomes stale, as certmagic calls it, one TTL after its holder has died, and never
// while its holder lives: certmagic may retry an order for 30 days under one lock.
type CertmagicStorage struct {
	certmagic.Storage
	locks *core.Locker
	key   *key.Key
	also  certmagic.Locker // nil but for a migration

	mu    sync.Mutex // protects turns
	turns map[string]*turn
}

// turn is this process's use of a lock, from before it is taken until Unlock. Unlock is given
// no more than a name: if a second user of this process could come in after a loss, before the
// first one's Unlock, that one would free the second one's lock.
type turn struct {
	lease *core.Lease
	over  chan struct{} // closed by its end
}

var (
	_ certmagic.Storage          = (*CertmagicStorage)(nil)
	_ certmagic.TryLocker        = (*CertmagicStorage)(nil)
	_ certmagic.LockLeaseRenewer = (*CertmagicStorage)(nil)
)

// NewCertmagicStorage returns a CertmagicStorage.
func NewCertmagicStorage(files certmagic.Storage, l *core.Locker) *CertmagicStorage {
	return &CertmagicStorage{
		Storage: files,
		locks:   l,
		key:     key.MustParse("certmagic:{lock}"),
		turns:   make(map[string]*turn),
	}
}

// AlsoLock makes each lock take the old one too, inside its own. That is for a rolling deploy:
// processes that know the old one only are excluded as well, until the last of them has gone.
func (s *CertmagicStorage) AlsoLock(old certmagic.Locker) *CertmagicStorage {
	s.also = old
	return s
}

// Lock implements certmagic.Locker: it waits until it has the lock, or ctx ends.
func (s *CertmagicStorage) Lock(ctx context.Context, name string) error {
	return s.lock(ctx, name, core.WaitForever, func() (bool, error) { return true, s.also.Lock(ctx, name) })
}

// TryLock implements certmagic.TryLocker.
func (s *CertmagicStorage) TryLock(ctx context.Context, name string) (bool, error) {
	err := s.lock(ctx, name, 0, func() (bool, error) {
		old, ok := s.also.(certmagic.TryLocker)
		if !ok {
			return false, fmt.Errorf("%T has no TryLock", s.also)
		}
		return old.TryLock(ctx, name)
	})
	if errors.Is(err, core.ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

func (s *CertmagicStorage) lock(ctx context.Context, name string, wait time.Duration, old func() (bool, error)) error {
	t, err := s.begin(ctx, name, wait)
	if err != nil {
		return err
	}
	lease, err := s.take(ctx, name, wait, old)
	if err != nil {
		s.end(name, t)
		return err
	}
	s.mu.Lock()
	t.lease = lease
	s.mu.Unlock()
	return nil
}

// take begins the lease and, in a migration, takes the old lock inside it.
func (s *CertmagicStorage) take(ctx context.Context, name string, wait time.Duration, old func() (bool, error)) (*core.Lease, error) {
	locked, err := s.key.Name(name)
	if err != nil {
		return nil, err
	}
	// A lease has no time limit unless WithMaxHold sets one: certmagic may try for 30 days.
	lease, err := s.locks.Acquire(ctx, locked, core.WithWait(wait), core.WithoutReentry())
	if err != nil || s.also == nil {
		return lease, err
	}
	ok, err := old()
	if err == nil && !ok {
		err = core.ErrHeld
	}
	if err != nil {
		return nil, errors.Join(err, lease.Release(ctx))
	}
	return lease, nil
}

// Unlock implements certmagic.Locker.
func (s *CertmagicStorage) Unlock(ctx context.Context, name string) error {
	t := s.turn(name)
	if t == nil {
		return fmt.Errorf("%q is not locked here", name)
	}
	defer s.end(name, t)
	var old error
	if s.also != nil {
		old = s.also.Unlock(ctx, name)
	}
	return errors.Join(old, t.lease.Release(ctx))
}

// RenewLockLease implements certmagic.LockLeaseRenewer, which certmagic asks before each
// further try. The watchdog has renewed the lease already; what there is to say is whether it
// still stands.
func (s *CertmagicStorage) RenewLockLease(_ context.Context, name string, _ time.Duration) error {
	t := s.turn(name)
	if t == nil {
		return fmt.Errorf("%q is not locked here", name)
	}
	return t.lease.Err()
}

// begin waits for the turn of this process's other users of the lock.
func (s *CertmagicStorage) begin(ctx context.Context, name string, wait time.Duration) (*turn, error) {
	for {
		s.mu.Lock()
		other := s.turns[name]
		if other == nil {
			t := &turn{over: make(chan struct{})}
			s.turns[name] = t
			s.mu.Unlock()
			return t, nil
		}
		s.mu.Unlock()
		if wait == 0 {
			return nil, core.ErrHeld
		}
		select {
		case <-other.over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *CertmagicStorage) turn(name string) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.turns[name]; t != nil && t.lease != nil {
		return t
	}
	return nil
}

func (s *CertmagicStorage) end(name string, t *turn) {
	s.mu.Lock()
	delete(s.turns, name)
	s.mu.Unlock()
	close(t.over)
}
