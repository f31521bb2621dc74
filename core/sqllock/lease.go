package sqllock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Acquire implements driver.Driver.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if c.Dedup > 0 {
		return s.acquireUndone(ctx, c)
	}
	g, granted, err := s.take(ctx, c)
	if err != nil || granted {
		return g, err
	}
	held, _, _ := s.look(ctx, c) // without an answer it is held all the same
	return driver.Grant{}, held
}

// acquireUndone looks for a marker before it takes the name, since most find one that has been
// there for long, and once more while the name is its own: only an owner leaves markers, so
// nobody can any more.
func (s *Store) acquireUndone(ctx context.Context, c driver.Claim) (none driver.Grant, _ error) {
	_, done, err := s.look(ctx, c)
	switch {
	case err != nil:
		return none, err
	case done != nil:
		return none, done
	}
	g, granted, err := s.take(ctx, c)
	if err != nil {
		return none, err
	}
	held, done, err := s.look(ctx, c)
	switch {
	case granted && err != nil:
		return none, driver.UnknownOutcome(err)
	case granted && done == nil:
		return g, nil
	case granted:
		return none, s.giveBack(ctx, c, done)
	case done != nil:
		return none, done
	default:
		return none, held
	}
}

// giveBack frees a name that was taken for work that is done.
func (s *Store) giveBack(ctx context.Context, c driver.Claim, done *driver.Duplicate) error {
	_, err := s.affected(ctx, s.do.free, c.Name, c.Token)
	if err != nil {
		return driver.UnknownOutcome(err)
	}
	return done
}

// take makes c's token the owner, if it is that already or nobody is.
func (s *Store) take(ctx context.Context, c driver.Claim) (g driver.Grant, granted bool, err error) {
	// Nobody knows whether others wait, so they are not kept waiting for more turns than beside others.
	n := min(max(1, c.Fences), driver.TurnsBesideOthers)
	last, granted, err := s.number(ctx, s.do.take, c.Name, c.Token, c.Label, c.TTL.Microseconds(), int64(n))
	if err != nil || !granted {
		return g, false, err
	}
	return driver.Grant{Fence: uint64(last - int64(n) + 1), Fences: n}, true, nil //nolint:gosec // G115: it counts up from the clock
}

// look says who has the name, and whether c's marker stands. Where an owner has just gone,
// held says nothing about it.
func (s *Store) look(ctx context.Context, c driver.Claim) (held *driver.Held, done *driver.Duplicate, err error) {
	held = &driver.Held{}
	marker := c.Name
	if c.Dedup > 0 {
		marker = markerOf(c)
	}
	var (
		name, label string
		left        int64
	)
	_, err = s.rows(ctx, s.do.look, []any{c.Name, marker}, func() {
		if name == c.Name {
			held = &driver.Held{Label: label, Remaining: time.Duration(left) * time.Microsecond}
		} else {
			done = &driver.Duplicate{Label: label}
		}
	}, &name, &label, &left)
	return held, done, err
}

// markerOf is the name of a marker's row. A space is in no name of a lock.
func markerOf(c driver.Claim) string { return c.Name + " " + c.Scope }

// Release implements driver.Driver.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	var (
		rows int64
		err  error
	)
	if c.Mark {
		rows, err = s.changed(ctx, s.do.complete, c.Name, c.Token, markerOf(c), c.Label, c.Dedup.Microseconds())
	} else {
		rows, err = s.changed(ctx, s.do.free, c.Name, c.Token)
	}
	switch {
	case err != nil:
		return err
	case rows == 0:
		return driver.ErrNotOwner
	}
	s.tidy(ctx)
	return nil
}
