package sqllock

import (
	"context"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Acquire implements driver.Driver. A claim that nobody can be in the way of takes the name in one
// statement. Everything else reads the row first.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := s.ready(ctx); err != nil {
		return driver.Grant{}, err
	}
	if c.Exclusive() && c.Handoff == "" && c.Dedup == 0 && s.do.take.text != "" {
		last, err := s.takes(ctx, c)
		if err != nil {
			return driver.Grant{}, err
		}
		if last.found {
			return grantOf(last.n, fencesOf(c, false)), nil
		}
	}
	var said struct {
		grant   driver.Grant
		refused error
	}
	if err := s.change(ctx, c, func(r *row) { said.grant, said.refused = r.ask(c) }); err != nil {
		return driver.Grant{}, err
	}
	return said.grant, said.refused
}

// take takes a name that nobody can be in the way of.
func (s *Store) take(ctx context.Context, c driver.Claim) (number, error) {
	n := fencesOf(c, false)
	return s.number(ctx, s.do.take, c.Name, c.Token, c.Label, c.TTL.Microseconds(), n, sign(n))
}

// sign is that of row.turn, for a grant of n fences.
func sign(n int64) int {
	if n > 1 {
		return -1
	}
	return 1
}

// Release implements driver.Driver. The end of an exclusive grant is one statement, whoever waits.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	mine, err := s.end(ctx, c)
	if err != nil {
		return err
	}
	if !mine {
		var said bool
		err := s.change(ctx, c, func(r *row) {
			said = r.release(c)
			r.marks = said && c.Dedup > 0
		})
		if err != nil {
			return err
		}
		if mine = said; !mine {
			return driver.ErrNotOwner
		}
	}
	s.tidy(ctx, c.Name)
	return nil
}

// end frees the name of an exclusive owner, or leaves it taken. It knows nothing of a token in the queue.
func (s *Store) end(ctx context.Context, c driver.Claim) (mine bool, err error) {
	switch {
	case !c.Exclusive():
		return false, nil
	case c.Dedup == 0:
		end := s.ends
		if c.Keep > 0 { // that has to outlive a crash, and what shares a statement need not
			end = s.ended
		}
		said, err := end(ctx, c)
		return said.found, err
	case s.do.complete.text == "":
		return false, nil
	}
	var head string
	n, err := s.once(ctx, s.do.complete, append(endOf(c), markerOf(c), c.Label, c.Dedup.Microseconds()), answer{dest: []any{&head}})
	if err == nil && n > 0 && c.Keep == 0 {
		_ = s.notify(ctx, head) // who is not told looks by itself
	}
	return n > 0, err
}

// endOf is what says which claim ends, and how.
func endOf(c driver.Claim) []any {
	return []any{c.Name, c.Token, leftBy(c), c.Keep.Microseconds()}
}

// ended ends one that nobody can be in the way of.
func (s *Store) ended(ctx context.Context, c driver.Claim) (number, error) {
	n, err := s.changed(ctx, s.do.end, endOf(c)...)
	return number{n, n > 0}, err
}
