package sqllock

import (
	"context"
	"encoding/json"
	"slices"
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

// Renew implements driver.Driver. All claims go into one statement, if the dialect has one. Claims
// that it has not renewed are then asked for one by one: either they have another owner, or their
// rows were locked.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs := make([]error, len(claims))
	renewed := make(map[owned]bool, len(claims))
	if len(claims) > 1 && s.do.renewMany.text != "" {
		if err := s.renewMany(ctx, claims, renewed); err != nil {
			return slices.Repeat([]error{err}, len(claims))
		}
	}
	left := 0
	for _, c := range claims {
		if !renewed[owned{c.Name, c.Token}] {
			left++
		}
	}
	for i, c := range claims {
		if !renewed[owned{c.Name, c.Token}] {
			errs[i] = s.renewOne(ctx, c, left)
			left--
		}
	}
	return errs
}

func (s *Store) renewMany(ctx context.Context, claims []driver.Claim, renewed map[owned]bool) error {
	all := make([]renewal, 0, len(claims))
	index := make(map[owned]int, len(claims))
	for _, c := range claims {
		o, ttl := owned{c.Name, c.Token}, c.TTL.Microseconds()
		if i, ok := index[o]; ok { // an update changes a row once
			all[i].TTL = max(all[i].TTL, ttl)
			continue
		}
		index[o] = len(all)
		all = append(all, renewal{o, ttl})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return driver.NotSent(err)
	}
	var o owned
	_, err = s.rows(ctx, s.do.renewMany, []any{string(text)}, func() { renewed[o] = true }, &o.Name, &o.Token)
	return err
}

// renewOne takes no more than its share of the time left: a row that stays locked must not
// cost those after it their answer.
func (s *Store) renewOne(ctx context.Context, c driver.Claim, left int) error {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	var (
		found bool
		err   error
	)
	if s.dialect == MySQL {
		_, found, err = s.number(ctx, s.do.renew, c.Name, c.Token, c.TTL.Microseconds())
	} else {
		var rows int64
		rows, err = s.affected(ctx, s.do.renew, c.Name, c.Token, c.TTL.Microseconds())
		found = rows > 0
	}
	switch {
	case err != nil:
		return err
	case !found:
		return driver.ErrNotOwner
	}
	return nil
}
