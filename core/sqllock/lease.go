package sqllock

import (
	"context"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Acquire implements driver.Driver. A claim that nobody can be in the way of takes the name in one
// statement. Everything else reads the row first.
func (s *store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := s.ready(ctx); err != nil {
		return driver.Grant{}, err
	}
	if c.Exclusive() && c.Place == "" && c.Handoff == "" && c.Dedup == 0 && s.dialect != SQLite { // where a refusal would be a write
		g, granted, err := s.take(ctx, c)
		if err != nil || granted {
			return g, err
		}
	}
	if c.Place != "" {
		g, granted, err := s.takeTurn(ctx, c)
		if err != nil || granted {
			return g, err
		}
	}
	return s.ask(ctx, c)
}

// ask has the row decide about c. A place in the queue notes what it has seen, for the Wait that follows.
func (s *store) ask(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	var said struct {
		grant   driver.Grant
		refused error
		seen    look
		next    *turn
		stands  bool // in the queue, for a name without room
	}
	told := c.Place != "" && s.hub.tells()
	err := s.change(ctx, c, func(r *row) {
		said.grant, said.refused = r.acquire(c, s.channel())
		i := r.standing(c.At())
		if said.stands = told && said.refused != nil && i >= 0 && !r.room(c); said.stands {
			said.seen, said.next = r.lookFrom(i, r.frees(c)), r.turnOf(c)
		}
	})
	switch {
	case err != nil:
		return driver.Grant{}, err
	case said.refused == nil:
		return said.grant, nil
	case said.stands:
		s.hub.refused(c.Place, said.seen)
		s.hub.expect(c, said.next)
	}
	return driver.Grant{}, said.refused
}

// take makes c's token the owner of a name that has no queue, if it is that already or nobody is.
func (s *store) take(ctx context.Context, c driver.Claim) (g driver.Grant, granted bool, err error) {
	n := fencesOf(c)
	sign := 1
	if n > 1 {
		sign = -1
	}
	last, granted, err := s.takes.do(ctx, c, func() (int64, bool, error) {
		return s.number(ctx, s.do.take, c.Name, c.Token, c.Label, c.TTL.Microseconds(), n, sign)
	})
	if err != nil || !granted {
		return g, false, err
	}
	return grantOf(last, n), true, nil
}

// grantOf is a grant of n fences.
func grantOf(last, n int64) driver.Grant {
	return driver.Grant{Fence: uint64(last - n + 1), Fences: int(n)} //nolint:gosec // G115: it counts up from the clock
}

func fencesOf(c driver.Claim) int64 { return int64(min(max(1, c.Fences), driver.MaxTurns)) }

// Release implements driver.Driver. The end of an exclusive tenure is one statement, whoever waits.
func (s *store) Release(ctx context.Context, c driver.Claim) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	mine, err := s.release(ctx, c)
	switch {
	case err != nil:
		return err
	case !mine:
		return driver.ErrNotOwner
	}
	s.tidy(ctx)
	return nil
}

func (s *store) release(ctx context.Context, c driver.Claim) (mine bool, err error) {
	if c.Exclusive() && c.Place == "" && (!c.Mark || s.do.complete.text != "") {
		return s.end(ctx, c)
	}
	var said bool
	err = s.change(ctx, c, func(r *row) {
		said = r.release(c)
		r.marks = said && c.Mark
	})
	return err == nil && said, err
}

// end frees the name of an exclusive owner, or leaves it taken.
func (s *store) end(ctx context.Context, c driver.Claim) (mine bool, err error) {
	left := ""
	if c.Keep > 0 {
		left = leftBy(c)
	}
	args := []any{c.Name, c.Token, left, c.Keep.Microseconds()}
	stmt := s.do.end
	if c.Mark {
		stmt, args = s.do.complete, append(args, markerOf(c), c.Label, c.Dedup.Microseconds())
		n, err := s.changed(ctx, stmt, args...)
		return n > 0, err
	}
	_, mine, err = s.ends.do(ctx, c, func() (int64, bool, error) {
		n, err := s.changed(ctx, stmt, args...)
		return n, n > 0, err
	})
	return mine, err
}
