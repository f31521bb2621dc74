package natslock

import (
	"cmp"
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// Acquire implements driver.Driver.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	err = s.run(ctx, func(ctx context.Context) error {
		now, err := s.look(ctx, c, false)
		if err == nil {
			g, err = s.seize(ctx, c, now)
		}
		return err
	})
	return g, err
}

// seize gives c the name, or says why it does not get it.
func (s *Store) seize(ctx context.Context, c driver.Claim, now *state) (g driver.Grant, err error) {
	switch {
	case now.done.there():
		if err := s.leave(ctx, c, now); err != nil {
			return g, err
		}
		return g, &driver.Duplicate{Label: recordOf(now.done).Label}
	case now.owned(c), now.admits(c) && (now.heads() || now.isFor(c)):
	default:
		return g, now.held(c)
	}
	g, err = s.take(ctx, c, now)
	if err == nil {
		err = s.beside(ctx, c, now)
	}
	return g, err
}

// take makes c an owner, or gives it its full TTL again if an earlier command has made it one. Then c leaves the queue.
func (s *Store) take(ctx context.Context, c driver.Claim, now *state) (g driver.Grant, err error) {
	h, next := holderOf(c), lock{Kind: kindOf(c)}
	if !c.Exclusive() {
		next.Holders = now.is.alive(now.at).Holders
	}
	if mine := now.mine(c); mine != nil {
		h.Order, h.Since = mine.Order, mine.Since
	}
	revision, err := s.set(ctx, c.Name, now, next.with(h))
	if err != nil {
		return g, err
	}
	if err := s.leave(ctx, c, now); err != nil {
		return g, err
	}
	if g.Limit = now.fewer(c); h.Limit == 0 {
		g.Fence = cmp.Or(h.Order, revision)
	}
	return g, nil
}

// set writes the lock as it will be, if it is still as it was read, and returns its new revision.
func (s *Store) set(ctx context.Context, name string, now *state, next lock) (uint64, error) {
	bounded, cancel := now.inTime(ctx)
	defer cancel()
	revision, err := s.put(bounded, write{key: lockKey(name), value: valueOf(next), ttl: seconds(next.lasts(now.at)), after: now.lock.at()})
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = errTooSlow
	}
	return revision, err
}

var errTooSlow = errors.New("natslock: no answer for as long as the other holders of the lock have it")

// beside looks once more for the marker, after c has joined other holders, one of whom may have left it since c has looked: that does
// not change the lock. Nor does the lock prove anything if it was never there, or is forgotten: a replica that is late by more than
// that finds neither it nor the marker.
func (s *Store) beside(ctx context.Context, c driver.Claim, now *state) error {
	if c.Dedup == 0 || !now.is.several() && now.lock != nil {
		return nil
	}
	marker, err := s.ask(ctx, doneKey(c.Name, c.Scope))
	if err != nil || !marker.there() {
		return err
	}
	if err := s.Release(ctx, driver.Claim{Name: c.Name, Token: c.Token, Limit: c.Limit}); err != nil {
		return driver.UnknownOutcome(err)
	}
	return &driver.Duplicate{Label: recordOf(marker).Label}
}

// Release implements driver.Driver. It changes the lock only at the revision at which its token has owned it.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	released := driver.ErrNotOwner
	err := s.run(ctx, func(ctx context.Context) error { // again after a renewal that was late, another holder, or an eviction
		now, err := s.look(ctx, c, true)
		if err != nil {
			return err
		}
		if now.owned(c) {
			if c.Dedup > 0 {
				if err := s.mark(ctx, c, now); err != nil {
					return err
				}
				c.Dedup, released = 0, nil // the work is done, whatever becomes of the lock
			}
			if err := s.end(ctx, c, now); err != nil {
				return err
			}
			released = nil
		}
		return s.leave(ctx, c, now)
	})
	if err != nil {
		return err
	}
	return released
}

// mark leaves the marker, if c's token still owns the name at that moment.
func (s *Store) mark(ctx context.Context, c driver.Claim, now *state) error {
	r := record{ID: digest(c.Token), TTL: c.Dedup.Milliseconds(), Label: c.Label}
	_, err := s.put(ctx, write{
		key: doneKey(c.Name, c.Scope), value: valueOf(r), ttl: seconds(c.Dedup),
		of: lockKey(c.Name), after: now.lock.at(),
	})
	return err
}

// end takes the name from c, which is one of its holders, and may leave it taken.
func (s *Store) end(ctx context.Context, c driver.Claim, now *state) error {
	if c.Keep > 0 && !now.is.several() {
		_, err := s.set(ctx, c.Name, now, leftBy(c))
		return err
	}
	return s.part(ctx, c.Name, now, digest(c.Token))
}

// part takes the name from one holder. The key goes with the last one.
func (s *Store) part(ctx context.Context, name string, now *state, id string) (err error) {
	rest := now.is.alive(now.at).without(id)
	if len(rest.Holders) == 0 || !now.is.several() {
		err = s.remove(ctx, now.lock)
	} else {
		_, err = s.set(ctx, name, now, rest)
	}
	if err == nil && (now.is.Kind != inspect.HoldShared || len(rest.Holders) == 0) { // others are in a writer's way still
		s.tell(name, lockFreed)
	}
	return err
}
