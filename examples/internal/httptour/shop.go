package httptour

import (
	"context"
	"time"
)

// Work is what the shop's handlers do: it takes a while, and stops when ctx ends, which is also
// when the lock is lost.
func Work(ctx context.Context) error {
	select {
	case <-time.After(300 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
