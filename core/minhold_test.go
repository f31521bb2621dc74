package core_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

const minHold = time.Minute

func TestAnEarlyReleaseLeavesTheNameTakenForTheRestOfMinHold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithMinHold(minHold), core.WithLabel("node-1"))
		time.Sleep(25 * time.Second)
		b.ok(x.Release(b.Context()))
		const rest = minHold - 25*time.Second
		for _, l := range []*core.Locker{b.other(), b.locks} {
			if held := b.refused(l, "name"); held.RetryAfter != rest {
				b.Errorf("retry after %s", held.RetryAfter)
			}
		}
		b.took(rest, 2*time.Millisecond, func() { b.gets(b.other().Acquire(b.Context(), "name")) })
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
		b.free()
	})
}

func TestACrashLeavesTheNameTakenForTheRestOfMinHold(t *testing.T) {
	t.Parallel()
	each(t, map[string]time.Duration{
		"at once": 0, "after renewals": 45 * time.Second, "at its end": 55 * time.Second,
	}, func(b *bench, crash time.Duration) {
		x := b.acquire(b.locks, "name", core.WithMinHold(minHold))
		granted := time.Now()
		time.Sleep(crash)
		b.ok(x.Err())
		b.link.All(lab.Refused)
		b.gets(b.other().Acquire(b.Context(), "name"))
		if after := time.Since(granted); after < minHold || after > max(minHold, crash+ttl)+2*time.Second {
			b.Errorf("free after %s", after)
		}
		b.is(x.Err(), core.ErrLost)
	})
}
