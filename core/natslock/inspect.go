package natslock

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// Inspect implements inspect.Inspector. It costs a read, and a question for the server's time.
func (s *Store) Inspect(ctx context.Context, name string) (info inspect.LeaseInfo, err error) {
	err = s.run(ctx, func(ctx context.Context) error {
		server, err := s.info(ctx)
		if err == nil {
			info, err = s.inspect(ctx, name, server.TimeStamp)
		}
		return err
	})
	info.Name = name
	return info, err
}

func (s *Store) inspect(ctx context.Context, name string, at time.Time) (info inspect.LeaseInfo, err error) {
	info.Name = name
	now, err := s.look(ctx, driver.Claim{Name: name}, false)
	if err != nil {
		return info, err
	}
	for _, p := range now.queue[:min(len(now.queue), inspect.MaxLine)] {
		info.Line = append(info.Line, inspect.WaiterInfo{
			Label: p.Label, Waited: since(p.Since, at), Alive: p.left(at) > 0,
		})
	}
	if now.lock.there() {
		now.reach(at)
		now.describe(&info)
	}
	return info, nil
}

// describe adds what is known of who has the name.
func (n *state) describe(info *inspect.LeaseInfo) {
	info.Held, info.Kind = true, n.is.Kind
	info.Foreign, info.Kept = n.is.Kind == inspect.HoldForeign, n.is.left()
	if info.Foreign {
		return
	}
	holders := n.is.alive(n.at).Holders
	if len(holders) == 0 { // the server is about to delete it
		holders = n.is.Holders
	}
	slices.SortStableFunc(holders, func(a, b record) int { return cmp.Compare(b.Ends, a.Ends) })
	first, now := holders[0], n.at
	info.Remaining = max(first.left(now), time.Millisecond)
	if !n.is.several() {
		info.Label, info.Handle, info.HeldFor = first.Label, handle(first.ID), since(first.Since, now)
		if !info.Kept {
			info.Fence = first.Order
		}
		return
	}
	for _, h := range holders[:min(len(holders), inspect.MaxLine)] {
		info.Holders = append(info.Holders, inspect.HolderInfo{
			Label: h.Label, Handle: handle(h.ID), Limit: h.Limit, HeldFor: since(h.Since, now), Remaining: max(h.left(now), time.Millisecond),
		})
	}
	for _, h := range holders {
		info.HeldFor = max(info.HeldFor, since(h.Since, now))
	}
	switch {
	case n.is.Kind == inspect.HoldLimited:
		info.Limit = n.allows(driver.Claim{Limit: maxHolders})
	case len(holders) == 1:
		info.Fence = first.Order
	}
}

// since is how long ago something was. The clocks of two servers may differ a little.
func since(ms int64, at time.Time) time.Duration { return max(0, at.Sub(time.UnixMilli(ms))) }

// handle is what is shown of an owner's token, by its digest.
func handle(digest string) string { return digest[:16] }

// Leases implements inspect.Inspector. It lists the keys of the bucket, and then asks for each name as Inspect
// does.
func (s *Store) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	return walk(ctx, s, prefix, "*.lock", func(ctx context.Context, name, _ string, at time.Time) (inspect.LeaseInfo, bool, error) {
		info, err := s.inspect(ctx, name, at)
		return info, info.Held, err
	})
}

// Markers implements inspect.MarkerInspector. It lists the keys of the bucket, and then asks for each marker.
func (s *Store) Markers(ctx context.Context, prefix string) iter.Seq2[inspect.MarkerInfo, error] {
	return walk(ctx, s, prefix, "*.done.*", func(ctx context.Context, name, scope string, at time.Time) (info inspect.MarkerInfo, there bool, err error) {
		now, err := s.look(ctx, driver.Claim{Name: name, Scope: scope, Dedup: minTTL}, false)
		if err != nil || !now.done.there() {
			return info, false, err
		}
		r := recordOf(now.done)
		return inspect.MarkerInfo{
			Name: name, Scope: scope, Label: r.Label, Remaining: max(min(r.ttl(), r.left(at)), time.Millisecond),
		}, true, nil
	})
}

// walk lists the keys that match the pattern, and yields what describe makes of those whose names begin with
// prefix.
func walk[T any](ctx context.Context, s *Store, prefix, pattern string, describe func(ctx context.Context, name, scope string, at time.Time) (T, bool, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := s.run(ctx, func(ctx context.Context) error {
			server, err := s.info(ctx, jetstream.WithSubjectFilter(s.subject(pattern)))
			if err != nil {
				return err
			}
			for subject := range server.State.Subjects {
				name, scope, ok := s.nameOf(subject)
				if !ok || !strings.HasPrefix(name, prefix) {
					continue
				}
				one, there, err := describe(ctx, name, scope, server.TimeStamp)
				if err != nil {
					return err
				}
				if there && !yield(one, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// nameOf reads the name that a key belongs to, and the scope if it is that of a marker.
func (s *Store) nameOf(subject string) (name, scope string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(subject, s.subject("")), ".")
	name, ok = decode(parts[0])
	if ok && len(parts) == 3 {
		scope, ok = decode(parts[2])
	}
	return name, scope, ok
}

// Evict implements inspect.Inspector.
func (s *Store) Evict(ctx context.Context, name, of string) error {
	return s.run(ctx, func(ctx context.Context) error { // again if it was renewed, or somebody else may have the name
		now, err := s.look(ctx, driver.Claim{Name: name, Limit: driver.Readers}, true) // what is left of several holders is by the server's time
		if err != nil {
			return err
		}
		if !now.lock.there() {
			return driver.ErrNotOwner
		}
		meant := slices.IndexFunc(now.is.Holders, func(one record) bool { return of == handle(one.ID) })
		if meant < 0 {
			return now.held(driver.Claim{})
		}
		return s.part(ctx, name, now, now.is.Holders[meant].ID)
	})
}

// Unmark implements inspect.MarkerInspector.
func (s *Store) Unmark(ctx context.Context, name, scope string) error {
	return s.run(ctx, func(ctx context.Context) error {
		marker, err := s.ask(ctx, doneKey(name, scope))
		if err != nil {
			return err
		}
		if !marker.there() {
			return driver.ErrNotOwner
		}
		if err = s.remove(ctx, marker); errors.Is(err, errMoved) { // another has removed it, or has left a new one since
			return driver.ErrNotOwner
		}
		return err
	})
}
