package sqllock

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// markerOf is the name of a marker's row. A space is in no name of a lock.
func markerOf(c driver.Claim) string { return c.Name + " " + c.Scope }

// Markers implements inspect.MarkerInspector. It reads pages of rows, in the order of their names.
func (s *Store) Markers(ctx context.Context, prefix string) iter.Seq2[inspect.MarkerInfo, error] {
	return func(yield func(inspect.MarkerInfo, error) bool) {
		if err := s.ready(ctx); err != nil {
			yield(inspect.MarkerInfo{}, err)
			return
		}
		s.walk(ctx, s.do.marks, prefix, func(r row, err error) bool {
			name, scope, _ := strings.Cut(r.name, " ")
			left := micros(r.expires - r.now)
			switch {
			case err != nil:
				return yield(inspect.MarkerInfo{}, err)
			case left <= 0: // it has ended meanwhile
				return true
			default:
				return yield(inspect.MarkerInfo{Name: name, Scope: scope, Label: r.label, Remaining: left}, nil)
			}
		})
	}
}

// Unmark implements inspect.MarkerInspector.
func (s *Store) Unmark(ctx context.Context, name, scope string) error {
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
