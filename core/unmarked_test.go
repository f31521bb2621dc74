package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

var errFull = errors.New("OOM command not allowed")

// full is a lock service that has no room for a marker.
type full struct {
	*memlock.Store
	releases int
}

func (f *full) Release(ctx context.Context, c driver.Claim) error {
	f.releases++
	marks := c.Dedup > 0
	c.Dedup = 0
	if err := f.Store.Release(ctx, c); err != nil || !marks {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrUnmarked, errFull)
}

func TestCompletedWorkWithoutAMarkerIsReleasedAndTheCallerIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, service, r := &bench{T: t}, &full{Store: memlock.New()}, &recorder{}
		locks, err := core.New(service, core.WithDedup(time.Hour), observing(r.observer()))
		b.ok(err)
		other, err := core.New(service, core.WithDedup(time.Hour))
		b.ok(err)
		x := b.acquire(locks, "name")
		err = x.Complete(t.Context())
		b.is(err, core.ErrUnavailable, errFull)
		b.isNot(err, core.ErrLost)
		if !strings.Contains(fmt.Sprint(err), "without its dedup marker") {
			t.Error(err)
		}
		if !errors.Is(x.Err(), core.ErrReleased) {
			t.Errorf("the lease: %v", x.Err())
		}
		if service.releases != 1 {
			t.Errorf("%d releases", service.releases)
		}
		b.ok(b.acquire(other, "name").Release(t.Context())) // neither held nor done
		r.take()
		b.ok(locks.Do(t.Context(), "name", noWork))
		if told := r.take(); !strings.Contains(told, "unconfirmed") {
			t.Error(told)
		}
		b.ok(locks.Close(t.Context()))
		b.ok(other.Close(t.Context()))
	})
}
