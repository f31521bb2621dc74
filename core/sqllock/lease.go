package sqllock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Acquire implements driver.Driver.
//
// A marker is looked for before the name is taken, since most find one that has been there
// for long, and once more while it is ours: only an owner leaves markers, so nobody can any
// more.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if c.Dedup > 0 {
		if _, done, err := s.look(ctx, c); done != nil || err != nil {
			return driver.Grant{}, refusal(done, err)
		}
	}
	g, granted, err := s.take(ctx, c)
	if err != nil || granted && c.Dedup == 0 {
		return g, err
	}
	held, done, err := s.look(ctx, c)
	switch {
	case granted && err != nil:
		return driver.Grant{}, begun(err)
	case granted && done == nil:
		return g, nil
	case granted:
		if err := s.Release(ctx, driver.Claim{Name: c.Name, Token: c.Token}); err != nil && !errors.Is(err, driver.ErrNotOwner) {
			return driver.Grant{}, begun(err)
		}
		return driver.Grant{}, done
	case done != nil || err != nil:
		return driver.Grant{}, refusal(done, err)
	default:
		return driver.Grant{}, held
	}
}

func refusal(done *driver.Done, err error) error {
	if err != nil {
		return err
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
func (s *Store) look(ctx context.Context, c driver.Claim) (held *driver.Held, done *driver.Done, err error) {
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
			done = &driver.Done{Label: label}
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
	if c.Done {
		rows, err = s.affected(ctx, s.do.complete, c.Name, c.Token, markerOf(c), c.Label, c.Dedup.Microseconds())
	} else {
		rows, err = s.affected(ctx, s.do.free, c.Name, c.Token)
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
