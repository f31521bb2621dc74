package natslock

import (
	"cmp"
	"context"
	"errors"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Acquire implements driver.Driver.
func (s *store) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	ctx, end, err := s.ready(ctx)
	if err != nil {
		return g, err
	}
	defer end()
	for tries := 0; ; tries++ {
		now, err := s.look(ctx, c, false)
		if err != nil {
			return g, err
		}
		if err := s.refuse(ctx, c, now); err != nil {
			return g, err
		}
		g, err = s.take(ctx, c, now)
		if err == nil {
			err = s.beside(ctx, c, now)
		}
		if !errors.Is(err, errMoved) {
			return g, err
		}
		if err := pause(ctx, tries); err != nil {
			return g, err
		}
	}
}

// refuse says why a claim does not get the name, if it does not.
func (s *store) refuse(ctx context.Context, c driver.Claim, now *state) error {
	switch {
	case now.done.there():
		return &driver.Duplicate{Label: parse(now.done).label}
	case now.owned(c), now.isFor(c) && now.admits(c), now.admits(c) && now.heads():
		return nil
	}
	if now.own != nil {
		_ = s.stay(ctx, c, now, now.own.label) // Wait finds out, and stands in line again
	}
	return now.held(c)
}

// take makes c an owner, or gives it its full TTL again if an earlier command has made it one. Then c leaves the line.
func (s *store) take(ctx context.Context, c driver.Claim, now *state) (g driver.Grant, err error) {
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
func (s *store) set(ctx context.Context, name string, now *state, next lock) (uint64, error) {
	bounded, cancel := now.inTime(ctx)
	defer cancel()
	revision, err := s.put(bounded, write{key: lockKey(name), value: next.String(), ttl: seconds(next.lasts(now.at)), after: now.lock.at()})
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = errTooSlow
	}
	return revision, err
}

var errTooSlow = errors.New("natslock: no answer for as long as the other holders of the lock have it")

// beside looks once more for the marker, after c has joined other holders. One of them may have left it since c has
// looked: that does not change the lock.
func (s *store) beside(ctx context.Context, c driver.Claim, now *state) error {
	if c.Dedup == 0 || !now.is.several() {
		return nil
	}
	marker, err := s.ask(ctx, doneKey(c.Name, c.Scope))
	if err != nil || !marker.there() {
		return err
	}
	if err := s.Release(ctx, driver.Claim{Name: c.Name, Token: c.Token, Shared: c.Shared, Limit: c.Limit}); err != nil {
		return driver.UnknownOutcome(err)
	}
	return &driver.Duplicate{Label: parse(marker).label}
}
