package sqllock

import (
	"context"
	"iter"
	"strings"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// markerOf is the name of a marker's row. A space is in no name of a lock.
func markerOf(c driver.Claim) string { return c.Name + " " + c.Scope }

// Markers implements driver.MarkerInspector. It reads pages of rows, in the order of their names.
func (s *store) Markers(ctx context.Context, prefix string) iter.Seq2[driver.MarkerInfo, error] {
	return func(yield func(driver.MarkerInfo, error) bool) {
		if err := s.ready(ctx); err != nil {
			yield(driver.MarkerInfo{}, err)
			return
		}
		s.walk(ctx, s.do.marks, prefix, func(r row, err error) bool {
			name, scope, _ := strings.Cut(r.name, " ")
			left := time.Duration(r.expires-r.now) * time.Microsecond
			switch {
			case err != nil:
				return yield(driver.MarkerInfo{}, err)
			case left <= 0: // it has ended meanwhile
				return true
			default:
				return yield(driver.MarkerInfo{Name: name, Scope: scope, Label: r.label, Remaining: left}, nil)
			}
		})
	}
}

// Unmark implements driver.MarkerInspector.
func (s *store) Unmark(ctx context.Context, name, scope string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	n, err := s.changed(ctx, s.do.unmark, markerOf(driver.Claim{Name: name, Scope: scope}))
	switch {
	case err != nil:
		return err
	case n == 0:
		return driver.ErrNotOwner
	}
	return nil
}
