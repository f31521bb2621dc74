// Package memlock is the backend inside the process. It is for tests, for development, and for
// programs that never run more than once at a time.
//
// It supports everything that core can ask of a backend. It judges time by the process's own clock,
// so it also runs inside a testing/synctest bubble, unchanged and without real waiting. Lockers that
// share a [Store] exclude each other as if each were in a separate process.
//
// A Store can inject failures, so that you can test your error handling: see [Store.Lose],
// [Store.Steal], [Store.SetDown], [Store.SetDelay] and [Store.DropReplies].
package memlock

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Store is a lock service in memory. The zero value is not usable; see [New].
type Store struct {
	faults faults

	mu      sync.Mutex // protects the fields below
	locks   map[string]*lock
	markers map[marker]*done
	lines   map[string][]*place
	fence   uint64 // the last one minted
	sweepAt int    // the number of entries at which expired ones are thrown out
}

type lock struct {
	kind    kind
	token   string             // of the owner, if it is exclusive
	holders map[string]*holder // by token, if it is not
	label   string
	grant   driver.Grant
	since   time.Time
	expires time.Time
	kept    bool   // by nobody: its owner has released it
	handoff string // of who may take it over, if it is kept
}

func (l *lock) ownedBy(token string) bool {
	switch {
	case l == nil || l.kept:
		return false
	case l.kind == exclusive:
		return l.token == token
	default:
		return l.holders[token] != nil
	}
}

// isFor says that the name was left for a hand-off.
func (l *lock) isFor(handoff string) bool { return l != nil && handoff != "" && l.handoff == handoff }

type marker struct{ name, scope string }

type done struct {
	label   string
	expires time.Time
}

var (
	_ driver.Driver    = (*Store)(nil)
	_ driver.Offerer   = (*Store)(nil)
	_ driver.Ranker    = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)

	_ driver.MarkerInspector = (*Store)(nil)
)

// Option configures a [Store].
type Option interface{ apply(*Store) }

// New returns an empty Store.
func New(opts ...Option) *Store {
	s := &Store{
		locks:   make(map[string]*lock),
		markers: make(map[marker]*done),
		lines:   make(map[string][]*place),
		sweepAt: minSweep,
	}
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// Capabilities implements driver.Driver.
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Backend: "memory", Punctual: true, Fence: true, Block: true, Floor: true, Shared: true, Limit: true, Dedup: true, Keep: true,
		Detach: true,
	}
}

// Acquire implements driver.Driver.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := s.reach(ctx); err != nil {
		return driver.Grant{}, err
	}
	g, err := s.acquire(c)
	if lost := s.answer(ctx); lost != nil {
		return driver.Grant{}, lost
	}
	return g, err
}

func (s *Store) acquire(c driver.Claim) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.fence = max(s.fence, c.Floor)
	if c.Dedup > 0 {
		if d := s.markers[marker{c.Name, c.Scope}]; d != nil && now.Before(d.expires) {
			return driver.Grant{}, &driver.Duplicate{Label: d.label}
		}
	}
	l := s.live(c.Name, now)
	room := l == nil || l.admits(c)
	switch {
	case l.ownedBy(c.Token) && l.kind == kindOf(c):
		if !c.Exclusive() {
			return s.admit(l, c, now), nil
		}
		s.leave(c.Name, c.At())
		l.extend(c, now)
		l.label = c.Label
		return l.grant, nil
	case l.isFor(c.Handoff):
		return s.grant(c, now), nil
	case room && s.ahead(c, now):
		s.serve(c.Name, now)
		return driver.Grant{}, &driver.Held{}
	case !room:
		s.ahead(c, now)
		return driver.Grant{}, &driver.Held{
			Label: l.label, Remaining: l.frees(c).Sub(now), Exact: l.kept && l.handoff == "", Limit: l.fewer(c),
		}
	case c.Exclusive():
		return s.grant(c, now), nil
	default:
		return s.admit(l, c, now), nil
	}
}

// grant makes c the owner.
func (s *Store) grant(c driver.Claim, now time.Time) driver.Grant {
	s.sweep(now)
	s.leave(c.Name, c.At())
	turns := min(max(1, c.Fences), driver.MaxTurns)
	if s.others(c.Name, c.At(), now) {
		turns = min(turns, driver.TurnsBesideOthers)
	}
	g := driver.Grant{Fence: s.mint(now, turns), Fences: turns}
	s.locks[c.Name] = &lock{token: c.Token, label: c.Label, grant: g, since: now, expires: now.Add(c.TTL)}
	return g
}

// admit makes c one of those that own l, or the first, if that is nil.
func (s *Store) admit(l *lock, c driver.Claim, now time.Time) driver.Grant {
	s.leave(c.Name, c.At())
	if l == nil {
		s.sweep(now)
		l = &lock{kind: kindOf(c), holders: make(map[string]*holder), since: now}
		if c.Shared {
			l.grant.Fence = s.mint(now, 1)
		}
		s.locks[c.Name] = l
	}
	l.extend(c, now)
	s.serve(c.Name, now) // there may be room for more
	return driver.Grant{Fence: l.grant.Fence, Limit: l.fewer(c)}
}

// mint returns the first of n fences larger than every earlier one, of a size that clocks
// give them, so that they also go on growing where fences of an earlier process are
// remembered.
func (s *Store) mint(now time.Time, n int) uint64 {
	first := max(s.fence+1, uint64(max(0, now.UnixMicro())))
	s.fence = first + uint64(n) - 1 //nolint:gosec // G115: n is at least 1
	return first
}

// Renew implements driver.Driver.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	err := s.reach(ctx)
	var errs []error
	if err == nil {
		errs = s.renew(claims)
		err = s.answer(ctx)
	}
	if err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	return errs
}

func (s *Store) renew(claims []driver.Claim) []error {
	errs := make([]error, len(claims))
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i, c := range claims {
		l := s.live(c.Name, now)
		switch {
		case !l.ownedBy(c.Token) || l.kind != kindOf(c):
			errs[i] = driver.ErrNotOwner
		case c.TTL == 0:
		default:
			l.extend(c, now)
		}
	}
	return errs
}

// Release implements driver.Driver.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	err := s.release(c)
	if lost := s.answer(ctx); lost != nil {
		return lost
	}
	return err
}

func (s *Store) release(c driver.Claim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case c.Offer > 0:
		s.withdraw(c, now)
	case c.Place != "":
		s.leave(c.Name, c.Place)
	}
	l := s.live(c.Name, now)
	mine := l.ownedBy(c.Token) && l.kind == kindOf(c)
	if mine {
		switch {
		case l.kind != exclusive:
			delete(l.holders, c.Token)
		case c.Keep > 0:
			l.kept, l.handoff, l.since, l.expires = true, c.Handoff, now, now.Add(c.Keep)
		default:
			delete(s.locks, c.Name)
		}
		if c.Mark {
			s.sweep(now)
			s.markers[marker{c.Name, c.Scope}] = &done{c.Label, now.Add(c.Dedup)}
		}
	}
	s.serve(c.Name, now)
	if !mine {
		return driver.ErrNotOwner
	}
	return nil
}

// live returns the lock of name, nil if there is none whose time is not over.
func (s *Store) live(name string, now time.Time) *lock {
	l := s.locks[name]
	if l == nil {
		return nil
	}
	l.settle(now)
	if !now.Before(l.expires) {
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
	for name := range s.lines {
		s.line(name, now)
	}
	s.sweepAt = max(minSweep, 2*(len(s.locks)+len(s.markers)))
}

// Format prints only that this is a Store, for every verb, because its contents include tokens.
func (s *Store) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "memlock.Store") // fmt has no way to return the error
}
