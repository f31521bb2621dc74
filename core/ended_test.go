package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest"
)

// Whoever reads that nothing was asked may conclude that nothing was granted.
func TestTheErrorOfACallWhoseCommandIsUnderWayDoesNotSayThatNothingWasAsked(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.All(drivertest.RequestLost)
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := b.locks.TryAcquire(ctx, "name")
		b.is(err, context.DeadlineExceeded)
		if err == nil || strings.Contains(err.Error(), "was asked") {
			b.Errorf("%v", err)
		}
		b.link.All(drivertest.Delivered)
	})
}
