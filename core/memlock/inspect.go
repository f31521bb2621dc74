package memlock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

var (
	_ inspect.Inspector       = (*Store)(nil)
	_ inspect.MarkerInspector = (*Store)(nil)
)

// Inspect implements inspect.Inspector.
func (s *Store) Inspect(ctx context.Context, name string) (inspect.LeaseInfo, error) {
	if err := s.reach(ctx); err != nil {
		return inspect.LeaseInfo{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r := s.open(name, now)
	defer s.shut(name, r)
	return r.inspect(name, now), nil
}

// Leases implements inspect.Inspector.
func (s *Store) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	return list(ctx, s, func(now time.Time) (infos []inspect.LeaseInfo) {
		for name, r := range s.names {
			r.tidy(now)
			if strings.HasPrefix(name, prefix) && len(r.holders) > 0 {
				infos = append(infos, r.inspect(name, now))
			}
		}
		return infos
	})
}

// list yields what collect finds under the mutex. What yield does may need the mutex itself.
func list[T any](ctx context.Context, s *Store, collect func(now time.Time) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := s.reach(ctx); err != nil {
			var none T
			yield(none, err)
			return
		}
		s.mu.Lock()
		infos := collect(time.Now())
		s.mu.Unlock()
		for _, info := range infos {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (r *record) inspect(name string, now time.Time) inspect.LeaseInfo {
	info := inspect.LeaseInfo{Name: name}
	for _, e := range r.queue[:min(len(r.queue), inspect.MaxLine)] {
		info.Line = append(info.Line, inspect.WaiterInfo{Label: e.claim.Label, Waited: now.Sub(e.came), Alive: true})
	}
	if len(r.holders) == 0 {
		return info
	}
	info.Held, info.Kept, info.Kind = true, r.kept(), r.held()
	if !info.Kept {
		info.Fence = r.fence
	}
	for _, h := range r.holders {
		info.Remaining, info.HeldFor = max(info.Remaining, h.expires.Sub(now)), max(info.HeldFor, now.Sub(h.since))
		if r.kind == exclusive {
			info.Label, info.Handle = h.label, h.handle()
			continue
		}
		if info.Limit == 0 || h.limit < info.Limit {
			info.Limit = max(0, h.limit)
		}
		info.Holders = append(info.Holders, inspect.HolderInfo{
			Label: h.label, Handle: h.handle(), Remaining: h.expires.Sub(now), Limit: max(0, h.limit), HeldFor: now.Sub(h.since),
		})
	}
	slices.SortFunc(info.Holders, func(a, b inspect.HolderInfo) int {
		return cmp.Or(cmp.Compare(a.Remaining, b.Remaining), strings.Compare(a.Handle, b.Handle))
	})
	info.Holders = info.Holders[max(0, len(info.Holders)-inspect.MaxLine):]
	return info
}

// held says how the name is held.
func (r *record) held() inspect.HoldKind {
	switch {
	case r.kept() && r.holders[0].handoff != "":
		return inspect.HoldHandoff
	case r.kept():
		return inspect.HoldKept
	case r.kind == shared:
		return inspect.HoldShared
	case r.kind == limited:
		return inspect.HoldLimited
	default:
		return inspect.HoldExclusive
	}
}

// handle is what is shown of the token.
func (h *holder) handle() string {
	sum := sha256.Sum256([]byte(cmp.Or(h.token, h.left)))
	const bytes = 8
	return hex.EncodeToString(sum[:bytes])
}

// Evict implements inspect.Inspector.
func (s *Store) Evict(ctx context.Context, name, handle string) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r := s.open(name, now)
	defer s.shut(name, r)
	if len(r.holders) == 0 {
		return driver.ErrNotOwner
	}
	i := slices.IndexFunc(r.holders, func(h holder) bool { return h.handle() == handle })
	if i < 0 {
		return r.refusal(driver.Claim{}, now)
	}
	r.holders = slices.Delete(r.holders, i, i+1)
	s.serve(r, now)
	return nil
}

// Markers implements inspect.MarkerInspector.
func (s *Store) Markers(ctx context.Context, prefix string) iter.Seq2[inspect.MarkerInfo, error] {
	return list(ctx, s, func(now time.Time) (infos []inspect.MarkerInfo) {
		for m, d := range s.markers {
			if strings.HasPrefix(m.name, prefix) && now.Before(d.expires) {
				infos = append(infos, inspect.MarkerInfo{Name: m.name, Scope: m.scope, Label: d.label, Remaining: d.expires.Sub(now)})
			}
		}
		return infos
	})
}

// Unmark implements inspect.MarkerInspector.
func (s *Store) Unmark(ctx context.Context, name, scope string) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := marker{name, scope}
	if d, ok := s.markers[m]; !ok || !time.Now().Before(d.expires) {
		return driver.ErrNotOwner
	}
	delete(s.markers, m)
	return nil
}
