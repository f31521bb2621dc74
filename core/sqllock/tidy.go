package sqllock

import (
	"context"
	"time"
)

const (
	// retention is how long the row of a name that nobody uses stays: as long as the
	// database's clock may step back without a fence that is too small.
	retention = 24 * time.Hour
	// tidyEvery is the number of releases for which a Store looks at one page of rows. A
	// page is more rows than so many releases can have left.
	tidyEvery = 8
	pageSize  = 32
)

// tidy deletes what is out of use among a page of rows, now and then: in turn those that follow the name that was
// released, and the first ones of the table. So it needs no memory, which a process that ends soon would lose: what is out
// of use follows a name that is released again, or follows what is out of use itself, or comes first.
//
// It is not part of the release, so its errors are nobody's: the next one tries again.
func (s *Store) tidy(ctx context.Context, name string) {
	n := s.releases.Add(1)
	if n%tidyEvery != 0 {
		return
	}
	after := ""
	if n/tidyEvery%2 == 0 {
		after = name
	}
	var idle string
	var names []any
	err := s.rows(ctx, s.do.idle, []any{after, retention.Microseconds(), pageSize}, answer{
		begin: func() { names = nil },
		row:   func() { names = append(names, idle) },
		dest:  []any{&idle},
	})
	if err != nil || len(names) == 0 {
		return
	}
	args := []any{names[0], retention.Microseconds()} // they may be in use again: the statement looks
	for i := 1; i < pageSize; i++ {                   // it has pageSize names: the last one fills it up
		args = append(args, names[min(i, len(names)-1)])
	}
	_, _ = s.changed(ctx, s.do.forget, args...)
}
