package sqllock

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// owned is what a renewal is about.
type owned struct {
	Name  string `json:"name"`
	Token string `json:"token"`
}

// renewal is how a claim travels in a statement for many.
type renewal struct {
	owned
	TTL int64 `json:"ttl"` // microseconds
}

// Renew implements driver.Driver. All claims go into one statement, if the dialect has one; in PostgreSQL, those that own
// a name together with others have one of their own. Claims that it has not renewed are then asked for one by one: either
// they have another owner, or their rows were locked.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	if err := s.ready(ctx); err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	var alone, together renewals
	of := func(c driver.Claim) *renewals {
		if c.Exclusive() {
			return &alone
		}
		return &together
	}
	for _, c := range claims {
		of(c).add(c)
	}
	if len(claims) > 1 { // the statement for one is cheaper
		s.renewAll(ctx, s.do.renewMany, &alone)
	}
	s.renewAll(ctx, s.do.renewTogether, &together)
	errs := make([]error, len(claims))
	var left []int
	for i, c := range claims {
		r := of(c)
		if errs[i] = r.err; r.err == nil && !r.renewed[owned{c.Name, c.Token}] {
			left = append(left, i)
		}
	}
	for n, i := range left {
		errs[i] = s.renewOne(ctx, claims[i], len(left)-n)
	}
	return errs
}

// renewals are those of one statement. It changes a row, or a holder, once.
type renewals struct {
	ttls    map[owned]int64
	renewed map[owned]bool
	err     error // then it is not known which were renewed
}

func (r *renewals) add(c driver.Claim) {
	if r.ttls == nil {
		r.ttls = make(map[owned]int64)
	}
	o := owned{c.Name, c.Token}
	r.ttls[o] = max(r.ttls[o], c.TTL.Microseconds())
}

func (s *Store) renewAll(ctx context.Context, stmt statement, r *renewals) {
	if len(r.ttls) == 0 || stmt.text == "" {
		return
	}
	all := make([]renewal, 0, len(r.ttls))
	for o, ttl := range r.ttls {
		all = append(all, renewal{o, ttl})
	}
	text, err := json.Marshal(all)
	if err != nil {
		r.err = driver.NotSent(err)
		return
	}
	var o owned
	said := make(map[owned]bool, len(all))
	err = s.rows(ctx, stmt, []any{string(text)}, answer{
		begin: func() { clear(said) },
		row:   func() { said[o] = true },
		dest:  []any{&o.Name, &o.Token},
	})
	switch {
	case strings.HasPrefix(sqlState(err), pgDataException): // of one of them: each finds out by itself
	case err != nil:
		r.err = err
	default:
		r.renewed = said
	}
}

// renewOne takes no more than its share of the time left: a row that stays locked must not
// cost those after it their answer.
func (s *Store) renewOne(ctx context.Context, c driver.Claim, left int) error {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	found, err := s.renewed(ctx, c)
	switch {
	case err != nil:
		return err
	case !found:
		return driver.ErrNotOwner
	}
	return nil
}

func (s *Store) renewed(ctx context.Context, c driver.Claim) (found bool, err error) {
	if !c.Exclusive() {
		var said bool
		err = s.change(ctx, c, func(r *row) { said = r.renew(c) })
		return err == nil && said, err
	}
	args := []any{c.Name, c.Token, c.TTL.Microseconds()}
	if s.dialect == MySQL {
		said, err := s.number(ctx, s.do.renew, args...)
		return said.found, err
	}
	rows, err := s.changed(ctx, s.do.renew, args...)
	return rows > 0, err
}
