package memlock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
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
		info.Held, info.Kept, info.Label, info.Fence, info.Remaining = true, l.kept, l.label, l.shown(), l.expires.Sub(now)
		info.Kind, info.HeldFor = l.held(), now.Sub(l.since)
		if l.kind == exclusive {
			info.Handle = handle(l.token)
		}
		for token, h := range l.holders {
			if info.Limit == 0 || h.limit < info.Limit {
				info.Limit = h.limit
			}
			info.Holders = append(info.Holders, driver.HolderInfo{
				Label: h.label, Handle: handle(token), Remaining: h.expires.Sub(now), Limit: h.limit, HeldFor: now.Sub(h.since),
			})
		}
	}
	slices.SortFunc(info.Holders, func(a, b driver.HolderInfo) int {
		return cmp.Or(cmp.Compare(a.Remaining, b.Remaining), strings.Compare(a.Handle, b.Handle))
	})
	info.Holders = info.Holders[max(0, len(info.Holders)-driver.MaxLine):]
	for _, p := range s.lines[name][:min(len(s.lines[name]), driver.MaxLine)] {
		info.Line = append(info.Line, driver.WaiterInfo{Label: p.want.Label, Waited: now.Sub(p.came), Alive: now.Before(p.dead)})
	}
	return info
}

// held says how the name is held.
func (l *lock) held() driver.HoldKind {
	switch {
	case l.kept && l.handoff != "":
		return driver.HoldHandoff
	case l.kept:
		return driver.HoldKept
	case l.kind == shared:
		return driver.HoldShared
	case l.kind == limited:
		return driver.HoldLimited
	default:
		return driver.HoldExclusive
	}
}

// Markers implements driver.MarkerInspector.
func (s *Store) Markers(ctx context.Context, prefix string) iter.Seq2[driver.MarkerInfo, error] {
	return func(yield func(driver.MarkerInfo, error) bool) {
		if err := s.reach(ctx); err != nil {
			yield(driver.MarkerInfo{}, err)
			return
		}
		for _, info := range s.marked(prefix) { // what yield does may need the mutex
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (s *Store) marked(prefix string) (infos []driver.MarkerInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for m, d := range s.markers {
		if strings.HasPrefix(m.name, prefix) && now.Before(d.expires) {
			infos = append(infos, driver.MarkerInfo{Name: m.name, Scope: m.scope, Label: d.label, Remaining: d.expires.Sub(now)})
		}
	}
	return infos
}

// Unmark implements driver.MarkerInspector.
func (s *Store) Unmark(ctx context.Context, name, scope string) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := marker{name, scope}
	if d := s.markers[m]; d == nil || !time.Now().Before(d.expires) {
		return driver.ErrNotOwner
	}
	delete(s.markers, m)
	return nil
}

// handle is what is shown of a token.
func handle(token string) string {
	sum := sha256.Sum256([]byte(token))
	const bytes = 8
	return hex.EncodeToString(sum[:bytes])
}

// shown is the fence of the holder. It is 0 if nobody has the name, and for a block of fences.
func (l *lock) shown() uint64 {
	if l.kept || l.grant.Fences > 1 {
		return 0
	}
	return l.grant.Fence
}

// Evict implements driver.Inspector.
func (s *Store) Evict(ctx context.Context, name, handle string) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	l := s.live(name, now)
	if l == nil {
		return driver.ErrNotOwner
	}
	switch token, ok := l.meant(handle); {
	case !ok:
		return &driver.Held{Label: l.label, Remaining: l.expires.Sub(now)}
	case l.kind == exclusive:
		delete(s.locks, name)
	default:
		delete(l.holders, token)
	}
	s.serve(name, now)
	return nil
}

// meant is the token of the holder with a handle.
func (l *lock) meant(of string) (token string, ok bool) {
	for _, token := range l.tokens() {
		if of == handle(token) {
			return token, true
		}
	}
	return "", false
}

func (l *lock) tokens() []string {
	if l.kind == exclusive {
		return []string{l.token}
	}
	return slices.Collect(maps.Keys(l.holders))
}
