package sqllock

import (
	"context"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Queue puts c in the queue, as a waiter does, and calls between after it has read the row, each time.
func (s *Store) Queue(ctx context.Context, c driver.Claim, between func()) error {
	return s.change(ctx, c, func(r *row) {
		between()
		r.stand(c, "", true)
	})
}
