// Package memlock is the backend inside the process: for tests, for development, and for
// programs of which there is only ever one.
//
// It has everything that core can ask a backend for, and judges time by the process's own
// clock, so it runs unchanged, and in no time, inside a testing/synctest bubble. Lockers
// that share a [Store] exclude each other as if each were a process of its own.
package memlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Store is a lock service in memory. Its zero value is not usable; see [New].
type Store struct {
	mu      sync.Mutex // protects the fields below
	locks   map[string]*lock
	markers map[marker]*done
	waiting map[string]map[chan struct{}]struct{}
	fence   uint64 // the last one minted
	sweepAt int    // the number of entries at which expired ones are thrown out
}

type lock struct {
	token   string
	label   string
	fence   uint64
	expires time.Time
}

type marker struct{ name, scope string }

type done struct {
	label   string
	expires time.Time
}

var (
	_ driver.Driver = (*Store)(nil)
	_ driver.Queuer = (*Store)(nil)
)

// Option configures a [Store].
type Option interface{ apply(*Store) }

// New returns an empty Store.
func New(opts ...Option) *Store {
	s := &Store{
		locks:   make(map[string]*lock),
		markers: make(map[marker]*done),
		waiting: make(map[string]map[chan struct{}]struct{}),
		sweepAt: minSweep,
	}
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// Capabilities implements driver.Driver.
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{Backend: "memory", Punctual: true, Fence: true, Dedup: true}
}

// Acquire implements driver.Driver.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := unsent(ctx); err != nil {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if c.Dedup > 0 {
		if d := s.markers[marker{c.Name, c.Scope}]; d != nil && now.Before(d.expires) {
			return driver.Grant{}, &driver.Done{Label: d.label}
		}
	}
	l := s.live(c.Name, now)
	switch {
	case l == nil:
		s.sweep(now)
		l = &lock{token: c.Token, label: c.Label, fence: s.mint(now)}
		s.locks[c.Name] = l
	case l.token != c.Token:
		return driver.Grant{}, &driver.Held{Label: l.label, Remaining: l.expires.Sub(now)}
	}
	l.expires = now.Add(c.TTL)
	return driver.Grant{Fence: l.fence}, nil
}

// mint returns a fence larger than every earlier one, of a size that clocks give it, so
// that it also goes on growing where fences of an earlier process are remembered.
func (s *Store) mint(now time.Time) uint64 {
	s.fence = max(s.fence+1, uint64(max(0, now.UnixMicro())))
	return s.fence
}

// Renew implements driver.Driver.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs := make([]error, len(claims))
	err := unsent(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i, c := range claims {
		l := s.live(c.Name, now)
		switch {
		case err != nil:
			errs[i] = err
		case l == nil || l.token != c.Token:
			errs[i] = driver.ErrNotOwner
		case c.TTL > 0:
			l.expires = now.Add(c.TTL)
		}
	}
	return errs
}

// Release implements driver.Driver.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	if err := unsent(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	l := s.live(c.Name, now)
	if l == nil || l.token != c.Token {
		return driver.ErrNotOwner
	}
	delete(s.locks, c.Name)
	if c.Done {
		s.sweep(now)
		s.markers[marker{c.Name, c.Scope}] = &done{c.Label, now.Add(c.Dedup)}
	}
	for wake := range s.waiting[c.Name] {
		close(wake)
	}
	delete(s.waiting, c.Name)
	return nil
}

// Wait implements driver.Queuer.
func (s *Store) Wait(ctx context.Context, c driver.Claim) error {
	s.mu.Lock()
	l := s.live(c.Name, time.Now())
	if l == nil || l.token == c.Token {
		s.mu.Unlock()
		return ctx.Err()
	}
	wake := make(chan struct{})
	if s.waiting[c.Name] == nil {
		s.waiting[c.Name] = make(map[chan struct{}]struct{})
	}
	s.waiting[c.Name][wake] = struct{}{}
	expires := l.expires
	s.mu.Unlock()
	defer s.forget(c.Name, wake)

	timer := time.NewTimer(time.Until(expires))
	defer timer.Stop()
	select {
	case <-wake:
		return nil
	case <-timer.C: // expired, or renewed: worth a try
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) forget(name string, wake chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting[name], wake)
	if len(s.waiting[name]) == 0 {
		delete(s.waiting, name)
	}
}

// live returns the lock of name, nil if there is none whose time is not over.
func (s *Store) live(name string, now time.Time) *lock {
	l := s.locks[name]
	if l == nil || !now.Before(l.expires) {
		return nil
	}
	return l
}

const minSweep = 1024

// sweep throws out what has expired, once the number of entries has doubled since the last
// time: a name that nobody asks for again must not stay for ever.
func (s *Store) sweep(now time.Time) {
	if len(s.locks)+len(s.markers) < s.sweepAt {
		return
	}
	for name, l := range s.locks {
		if !now.Before(l.expires) {
			delete(s.locks, name)
		}
	}
	for m, d := range s.markers {
		if !now.Before(d.expires) {
			delete(s.markers, m)
		}
	}
	s.sweepAt = max(minSweep, 2*(len(s.locks)+len(s.markers)))
}

// unsent is the error for a call whose context had ended before it began.
func unsent(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errors.Join(driver.ErrNotSent, err)
	}
	return nil
}

// Format prints no more than that it is a Store, for every verb: what it holds has tokens.
func (s *Store) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "memlock.Store") // fmt has no way to return the error
}
