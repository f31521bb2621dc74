package memlock

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Inspect implements driver.Inspector.
func (s *Store) Inspect(ctx context.Context, name string) (driver.LeaseInfo, error) {
	if err := s.reach(ctx); err != nil {
		return driver.LeaseInfo{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inspect(name, time.Now()), nil
}

// Leases implements driver.Inspector.
func (s *Store) Leases(ctx context.Context, prefix string) iter.Seq2[driver.LeaseInfo, error] {
	return func(yield func(driver.LeaseInfo, error) bool) {
		if err := s.reach(ctx); err != nil {
			yield(driver.LeaseInfo{}, err)
			return
		}
		for _, info := range s.held(prefix) { // what yield does may need the mutex
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (s *Store) held(prefix string) (infos []driver.LeaseInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for name := range s.locks {
		if strings.HasPrefix(name, prefix) && s.live(name, now) != nil {
			infos = append(infos, s.inspect(name, now))
		}
	}
	return infos
}

func (s *Store) inspect(name string, now time.Time) driver.LeaseInfo {
	info := driver.LeaseInfo{Name: name}
	if l := s.live(name, now); l != nil {
		info.Held, info.Label, info.Fence, info.Remaining = true, l.label, l.shown(), l.expires.Sub(now)
	}
	for _, p := range s.lines[name][:min(len(s.lines[name]), driver.MaxLine)] {
		info.Line = append(info.Line, driver.WaiterInfo{Waited: now.Sub(p.came), Alive: now.Before(p.dead)})
	}
	return info
}

func (l *lock) shown() uint64 { return cmp.Or(l.fence, l.grant.Fence) }

// Evict implements driver.Inspector.
func (s *Store) Evict(ctx context.Context, name string, fence uint64) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	l := s.live(name, now)
	switch {
	case l == nil:
		return driver.ErrNotOwner
	case l.shown() != fence:
		return &driver.Held{Label: l.label, Remaining: l.expires.Sub(now)}
	}
	delete(s.locks, name)
	s.tellFirst(name, now)
	return nil
}
