package sqllock

import (
	"context"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Old is a Store on the old contract, as it is inside.
type Old = store

// NewOld makes one.
var NewOld = newStore

// LineUp puts c's place in the queue, as a waiter does, and calls between after it has read the row, each time.
func (s *Store) LineUp(ctx context.Context, c driver.Claim, between func()) error {
	return s.old.change(ctx, c, func(r *row) {
		between()
		r.lineUp(c, "", true)
	})
}
