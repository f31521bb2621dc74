package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

const minHold = time.Minute

// heldFor fails the test unless the name is held, and says for how much longer exactly.
func (b *bench) heldFor(l *core.Locker, name string) time.Duration {
	b.Helper()
	_, err := l.TryAcquire(b.Context(), name)
	held, ok := errors.AsType[*core.HeldError](err)
	if !ok {
		b.Fatalf("not held: %v", err)
	}
	return held.RetryAfter
}

func TestAnEarlyReleaseLeavesTheNameTakenForTheRestOfMinHold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other := b.other()
		x := b.acquire(b.locks, "name", core.WithMinHold(minHold), core.WithLabel("node-1"))
		time.Sleep(25 * time.Second)
		b.ok(x.Release(b.Context()))
		for _, l := range []*core.Locker{other, b.locks} {
			if after := b.heldFor(l, "name"); after != minHold-25*time.Second {
				b.Errorf("retry after %s", after)
			}
		}
		b.took(minHold-25*time.Second, 2*time.Millisecond, func() {
			b.gets(other.Acquire(b.Context(), "name"))
		})
	})
}

func TestALateReleaseFreesTheNameAtOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithMinHold(minHold))
		time.Sleep(minHold)
		b.ok(x.Release(b.Context()))
		if keep := b.link.LastClaim().Keep; keep != 0 {
			b.Errorf("kept for %s", keep)
		}
		b.ok(b.acquire(b.other(), "name").Release(b.Context()))
	})
}

func TestACrashLeavesTheNameTakenForTheRestOfMinHold(t *testing.T) {
	t.Parallel()
	each(t, map[string]time.Duration{"at once": 0, "after renewals": 45 * time.Second, "at its end": 55 * time.Second}, func(b *bench, crash time.Duration) {
		other := b.other()
		x := b.acquire(b.locks, "name", core.WithMinHold(minHold))
		granted := time.Now()
		time.Sleep(crash)
		b.ok(x.Err())
		b.link.All(lab.Refused)
		y := b.lease(other.Acquire(b.Context(), "name"))
		if after := time.Since(granted); after < minHold || after > max(minHold, crash+ttl)+2*time.Second {
			b.Errorf("free after %s", after)
		}
		b.is(x.Err(), core.ErrLost)
		b.ok(y.Release(b.Context()))
		b.link.Heal()
	})
}
