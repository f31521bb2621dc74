package natslock

import (
	"context"
	"errors"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Release implements driver.Driver. It changes the lock only at the revision at which its token has owned it.
func (s *store) Release(ctx context.Context, c driver.Claim) error {
	ctx, end, err := s.ready(ctx)
	if err != nil {
		return err
	}
	defer end()
	released := driver.ErrNotOwner
	for tries := 0; ; tries++ {
		now, err := s.look(ctx, c, true)
		if err != nil {
			return err
		}
		if now.owned(c) {
			if c.Mark {
				if err = s.mark(ctx, c, now); err == nil {
					c.Mark, released = false, nil // the work is done, whatever becomes of the lock
				}
			}
			if err == nil {
				err = s.end(ctx, c, now)
			}
			if errors.Is(err, errMoved) { // by a renewal that was late, by another holder, or an eviction
				if err := pause(ctx, tries); err != nil {
					return err
				}
				continue
			}
			if err != nil {
				return err
			}
			released = nil
		}
		if c.Place != "" {
			if err := s.leave(ctx, c, now); err != nil {
				return err
			}
		}
		return released
	}
}

// mark leaves the marker, if c's token still owns the name at that moment.
func (s *store) mark(ctx context.Context, c driver.Claim, now *state) error {
	r := record{id: digest(c.Token), ttl: c.Dedup, label: c.Label}
	_, err := s.put(ctx, write{
		key: doneKey(c.Name, c.Scope), value: r.String(), ttl: seconds(c.Dedup),
		of: lockKey(c.Name), after: now.lock.at(),
	})
	return err
}

// end takes the name from c, which is one of its holders, and may leave it taken.
func (s *store) end(ctx context.Context, c driver.Claim, now *state) error {
	if c.Keep > 0 && !now.is.several() {
		_, err := s.set(ctx, c.Name, now, leftBy(c))
		return err
	}
	return s.part(ctx, c.Name, now, digest(c.Token))
}

// part takes the name from one holder. The key goes with the last one.
func (s *store) part(ctx context.Context, name string, now *state, id string) (err error) {
	rest := now.is.alive(now.at).without(id)
	if len(rest.Holders) == 0 || !now.is.several() {
		err = s.remove(ctx, now.lock)
	} else {
		_, err = s.set(ctx, name, now, rest)
	}
	if err == nil && (now.is.Kind != driver.HoldShared || len(rest.Holders) == 0) { // others are in a writer's way still
		s.tell(name, lockFreed)
	}
	return err
}
