package core_test

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// crowded returns contexts below x's, so many that x takes long to end them all.
func crowded(b *bench, x *core.Lease) (all []context.Context) {
	for range 20_000 {
		ctx, cancel := context.WithCancel(x.Context())
		b.Cleanup(cancel)
		all = append(all, ctx)
	}
	return all
}

// A lease and the one that has re-entered it end at once: only the last one gives the name back, once, and with all contexts ended.
func TestLeasesThatEndTogetherGiveTheNameBackOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var below []context.Context
		locks := b.locker(&hooked{Driver: b.link, release: func(ctx context.Context, c driver.Claim) error {
			for _, ctx := range below {
				if ctx.Err() == nil {
					b.Error("the name is given back, and a context has not ended")
					break
				}
			}
			return b.link.Release(ctx, c)
		}})
		x := b.acquire(locks, "name")
		y := b.lease(locks.TryAcquire(x.Context(), "name"))
		below = crowded(b, y)
		var ends sync.WaitGroup
		ends.Go(func() { b.ok(y.Release(b.Context())) })
		<-y.Context().Done() // and those below it have not ended yet
		b.ok(x.Release(b.Context()))
		ends.Wait()
		b.sent(1, lab.OpRelease)
	})
}

// The same with a hold that has another turn: by then it is that of who waits, and nobody ends it but him.
func TestLeasesThatEndTogetherEndNobodyElses(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x, waiting := b.queue(2)
		y := b.lease(b.locks.TryAcquire(x.Context(), "name"))
		crowded(b, y)
		var ends sync.WaitGroup
		ends.Go(func() { b.ok(y.Release(b.Context())) })
		<-y.Context().Done()
		b.ok(x.Release(b.Context()))
		ends.Wait()
		z := waiting[0].granted()
		if z.Fence() != x.Fence()+1 {
			b.Error("no turn of the same hold")
		}
		b.is(second(b.other().TryAcquire(b.Context(), "name")), core.ErrHeld)
		b.ok(z.Err())
		b.ok(z.Release(b.Context()))
	})
}
