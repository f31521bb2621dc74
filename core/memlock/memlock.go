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

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// Store is a lock service in memory. The zero value is not usable; see [New].
type Store struct {
	faults faults

	mu      sync.Mutex // protects the fields below
	names   map[string]*record
	spare   *record // an empty one, to use again
	markers map[marker]done
	fence   uint64 // the last one minted
	sweepAt int    // the number of entries at which those whose time is over are thrown out
}

type marker struct{ name, scope string }

type done struct {
	label   string
	expires time.Time
}

var _ ranked.Node = (*Store)(nil)

// Option configures a [Store].
type Option interface{ apply(*Store) }

// New returns an empty Store.
func New(opts ...Option) *Store {
	s := &Store{names: make(map[string]*record), markers: make(map[marker]done), sweepAt: minSweep}
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// Capabilities implements driver.Driver.
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Backend: "memory", Punctual: true, Forgets: true, Hears: true, Queue: true,
		Fence: true, Block: true, Shared: true, Limit: true, Dedup: true, Keep: true, Detach: true,
	}
}

// Acquire implements driver.Driver.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.AcquireRanked(ctx, ranked.Claim{Claim: c})
}

// AcquireRanked is Acquire for a node of package redlock.
func (s *Store) AcquireRanked(ctx context.Context, c ranked.Claim) (driver.Grant, error) {
	if err := s.reach(ctx); err != nil {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	now := time.Now()
	r := s.open(c.Name, now)
	var g driver.Grant
	err := s.refuse(r, c, now)
	if err == nil {
		g = s.take(r, c, now)
	}
	s.shut(c.Name, r)
	s.mu.Unlock()
	if lost := s.answer(ctx); lost != nil {
		return driver.Grant{}, lost
	}
	return g, err
}

// refuse says why c cannot be made an owner.
func (s *Store) refuse(r *record, at ranked.Claim, now time.Time) error {
	c := at.Claim
	if c.Dedup > 0 {
		if d, ok := s.markers[marker{c.Name, c.Scope}]; ok && now.Before(d.expires) {
			return &driver.Duplicate{Label: d.label}
		}
	}
	switch {
	case r.holder(c.Token) != nil && r.kind == kindOf(c):
	case r.isFor(c.Handoff):
	case !r.admits(c):
		return r.refusal(c, now)
	case len(r.queue) > 0 && r.queue[0].comesBefore(at):
		s.serve(r, now)
		return &driver.Held{Limit: r.fewer(c)}
	}
	return nil
}

// take makes c an owner, whom nothing refuses.
func (s *Store) take(r *record, c ranked.Claim, now time.Time) driver.Grant {
	if r.isFor(c.Handoff) {
		r.holders = r.holders[:0]
	}
	s.fence = max(s.fence, c.Floor)
	return s.grant(r, c.Claim, now)
}

// grant makes c an owner. If it owns the name already, it has its full time again.
func (s *Store) grant(r *record, c driver.Claim, now time.Time) (g driver.Grant) {
	r.leave(c.Token)
	first := len(r.holders) == 0
	r.kind = kindOf(c)
	r.put(holder{token: c.Token, label: c.Label, limit: c.Limit, since: now, expires: now.Add(c.TTL)})
	switch {
	case r.kind == exclusive:
		g.Fences = min(max(1, c.Fences), driver.MaxFences)
		if len(r.queue) > 0 {
			g.Fences = min(g.Fences, driver.FencesBesideOthers)
		}
		g.Fence = s.mint(now, g.Fences)
		r.fence = 0
		if g.Fences == 1 {
			r.fence = g.Fence
		}
		return g
	case r.kind == shared && first:
		r.fence = s.mint(now, 1)
	case r.kind == limited:
		r.fence = 0
	}
	g.Fence, g.Limit = r.fence, r.fewer(c)
	s.serve(r, now) // there may be room for more
	return g
}

// mint returns the first of n fences larger than every earlier one, of a size that clocks give them, so
// that they also go on growing where fences of an earlier process are remembered.
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
		r := s.open(c.Name, now)
		h := r.holder(c.Token)
		switch {
		case h == nil:
			errs[i] = driver.ErrNotOwner
		case c.TTL > 0:
			h.label, h.expires = c.Label, now.Add(c.TTL)
		}
		s.shut(c.Name, r)
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
	r := s.open(c.Name, now)
	defer s.shut(c.Name, r)
	h := r.holder(c.Token)
	if h != nil {
		if c.Dedup > 0 {
			s.sweep(now)
			s.markers[marker{c.Name, c.Scope}] = done{c.Label, now.Add(c.Dedup)}
		}
		if c.Keep > 0 && r.kind == exclusive {
			*h = holder{left: c.Token, label: c.Label, handoff: c.Handoff, since: now, expires: now.Add(c.Keep)}
		} else {
			r.remove(c.Token)
		}
	}
	r.leave(c.Token)
	s.serve(r, now)
	if h == nil {
		return driver.ErrNotOwner
	}
	return nil
}

// open returns what there is of name, without what is over. The caller has the mutex, and calls shut.
func (s *Store) open(name string, now time.Time) *record {
	r := s.names[name]
	if r == nil {
		s.sweep(now)
		r, s.spare = s.spare, nil
		if r == nil {
			r = new(record)
		}
		s.names[name] = r
	}
	r.tidy(now)
	return r
}

// shut forgets name if nothing is left of it.
func (s *Store) shut(name string, r *record) {
	if len(r.holders) == 0 && len(r.queue) == 0 {
		delete(s.names, name)
		s.spare = r
	}
}

const minSweep = 1024

// sweep throws out what is over, once the number of entries has doubled since the last time: a name
// that nobody asks for again must not stay for ever.
func (s *Store) sweep(now time.Time) {
	if len(s.names)+len(s.markers) < s.sweepAt {
		return
	}
	for name, r := range s.names {
		r.tidy(now)
		s.shut(name, r)
	}
	for m, d := range s.markers {
		if !now.Before(d.expires) {
			delete(s.markers, m)
		}
	}
	s.sweepAt = max(minSweep, 2*(len(s.names)+len(s.markers)))
}

// Format prints only that this is a Store, for every verb, because its contents include tokens.
func (s *Store) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "memlock.Store") // fmt has no way to return the error
}
