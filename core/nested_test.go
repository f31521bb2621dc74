package core_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// The outermost lease of a name ends first; what has re-entered it goes on.

func TestALossEndsInnerLeasesThatOutliveTheOuterOne(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		outer := b.acquire(b.locks, "name")
		inner, err := b.locks.Acquire(outer.Context(), "name")
		b.ok(err)
		b.ok(outer.Release(b.Context()))
		b.link.All(lab.RequestLost)
		until := inner.ValidUntil()
		<-inner.Context().Done()
		if late := time.Since(until); late > time.Millisecond {
			b.Errorf("trusted for %s after the TTL", late)
		}
		b.reason(inner, core.ReasonUnreachable)
		b.link.Heal()
	})
}

func TestAnInnerLeaseThatOutlivesTheOuterOneIsReentered(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		outer := b.acquire(b.locks, "name")
		inner, err := b.locks.Acquire(outer.Context(), "name")
		b.ok(err)
		b.ok(outer.Release(b.Context()))
		innermost, err := b.locks.TryAcquire(inner.Context(), "name")
		b.ok(err)
		if innermost.Fence() != inner.Fence() {
			b.Errorf("fence %d inside %d", innermost.Fence(), inner.Fence())
		}
		b.ok(inner.Release(b.Context()))
		b.taken(b.other(), "name")
		b.ok(innermost.Release(b.Context()))
		b.freeWithin(0, "name")
	})
}
