package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

var errFull = errors.New("OOM command not allowed")

// A lock service may have no room for a marker.
func TestCompletedWorkWithoutAMarkerIsReleasedAndTheCallerIsTold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		releases, r, dedup := 0, &recorder{}, core.WithDedup(time.Hour)
		full := &hooked{Driver: b.store, release: func(ctx context.Context, c driver.Claim) error {
			releases++
			marks := c.Dedup > 0
			c.Dedup = 0
			if err := b.store.Release(ctx, c); err != nil || !marks {
				return err
			}
			return fmt.Errorf("%w: %w", driver.ErrUnmarked, errFull)
		}}
		locks := b.locker(full, dedup, observing(r.observer()))
		x := b.acquire(locks, "name")
		err := x.Complete(b.Context())
		b.is(err, core.ErrUnavailable, errFull)
		b.isNot(err, core.ErrLost)
		b.says(err, core.ErrUnavailable, "without its dedup marker")
		b.is(x.Err(), core.ErrReleased)
		if releases != 1 {
			b.Errorf("%d releases", releases)
		}
		b.ok(b.acquire(b.locker(full, dedup), "name").Release(b.Context())) // neither held nor done
		r.take()
		b.ok(locks.Do(b.Context(), "name", noWork))
		if told := r.take(); !strings.Contains(told, "unconfirmed") {
			b.Error(told)
		}
	})
}
