package sqllock

import (
	"context"
	"sync"
	"time"
)

const (
	// retention is how long the row of a name that nobody uses stays: as long as the
	// database's clock may step back without a fence that is too small.
	retention = 24 * time.Hour
	// sweepEvery is the number of releases for which a Store looks at one page of rows. A
	// page is more rows than so many releases can have left.
	sweepEvery = 8
	pageSize   = 32
	// sweepFrom is behind the rows of InTx, whose deletion would wait for their transactions.
	sweepFrom = "!"
)

// sweep is how far a Store has got with looking for rows that are out of use. It goes
// through the table by name, from page to page, and begins again at its end: no index is
// needed, and what one release has to do is bounded.
type sweep struct {
	mu       sync.Mutex // protects the fields below
	releases int
	after    string
}

// tidy deletes what is out of use, now and then. It is not part of the release, so its
// errors are nobody's: the next one tries again.
func (s *store) tidy(ctx context.Context) {
	after, due := s.sweep.due()
	if !due {
		return
	}
	var (
		name  string
		stale bool
		seen  int
		idle  []string
	)
	_, err := s.rows(ctx, s.do.page, []any{after, retention.Microseconds(), pageSize}, answer{
		begin: func() { seen, idle = 0, nil },
		row: func() {
			seen++
			if stale {
				idle = append(idle, name)
			}
		},
		dest: []any{&name, &stale},
	})
	if err == nil && len(idle) > 0 { // they may be in use again: the statement looks
		_, err = s.affected(ctx, s.do.forget, forgetting(idle)...)
	}
	if err == nil {
		s.sweep.reached(name, seen == pageSize)
	}
}

// forgetting are the parameters of the statement that deletes what is out of use of a page, in one commit. It has pageSize
// names: the first one fills it up.
func forgetting(names []string) []any {
	args := []any{names[0], retention.Microseconds()}
	for i := 1; i < pageSize; i++ {
		name := names[0]
		if i < len(names) {
			name = names[i]
		}
		args = append(args, name)
	}
	return args
}

// due says whether a page is to be looked at, and after which name it begins.
func (w *sweep) due() (after string, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.releases++
	return max(w.after, sweepFrom), w.releases%sweepEvery == 1
}

// reached notes the last name of a page, and whether there may be more.
func (w *sweep) reached(name string, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = ""
	if more {
		w.after = name
	}
}
