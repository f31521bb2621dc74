package core_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestTheSameNameInsideALeaseReenters(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		depth := 0
		var fence uint64
		var nest func(ctx context.Context) error
		nest = func(ctx context.Context) error {
			f, _ := core.FenceFor(ctx, "name")
			if fence != 0 && f != fence {
				b.Errorf("fence %d inside %d", f, fence)
			}
			fence = f
			if depth++; depth == 5 {
				return nil
			}
			return b.locks.Do(ctx, "name", nest)
		}
		b.ok(b.locks.Do(b.Context(), "name", nest))
		if a, r := b.link.Calls(lab.OpAcquire), b.link.Calls(lab.OpRelease); depth != 5 || a != 1 || r != 1 {
			b.Errorf("depth %d with %d acquires and %d releases", depth, a, r)
		}
	})
}

func TestTheNameIsFreedWhenTheLastOfALeaseHasEnded(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		dedup := core.WithDedup(time.Hour)
		outer := b.acquire(b.locks, "name", dedup)
		b.is(second(b.locks.Acquire(outer.Context(), "name", dedup)), core.ErrInvalid)
		inner := b.lease(b.locks.Acquire(outer.Context(), "name"))
		b.ok(outer.Complete(b.Context()))
		b.taken(b.other(), "name", dedup)
		time.Sleep(10 * ttl) // renewed all the same
		b.ok(inner.Check(b.Context()))
		b.is(inner.Complete(b.Context()), core.ErrInvalid) // it has none of its own
		b.free()
		b.is(second(b.other().TryAcquire(b.Context(), "name", dedup)), core.ErrDuplicate)
	})
}

func TestALossEndsInnerLeasesToo(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		outer := b.acquire(b.locks, "name", core.WithoutRenewal(), core.WithShared())
		ended := b.lease(b.locks.Acquire(outer.Context(), "name", core.WithShared()))
		inner := b.lease(b.locks.Acquire(outer.Context(), "name", core.WithShared())) // beside its sibling, as readers are
		deeper := b.lease(b.locks.Acquire(ended.Context(), "name", core.WithShared()))
		b.ok(ended.Release(b.Context()))
		x := b.acquire(b.locks, "another", core.WithoutRenewal())
		b.lease(b.locks.TryAcquire(x.Context(), "another"))
		b.is(second(b.locks.Acquire(x.Context(), "another")), core.ErrHeld, context.Canceled) // the wait for a sibling, too
		for _, x := range []*core.Lease{deeper, inner, outer} {
			b.reason(x, core.ReasonExpired)
			b.is(x.Release(b.Context()), core.ErrLost)
		}
		<-ended.Context().Done()
		b.is(context.Cause(ended.Context()), context.Canceled) // it was released before
	})
}

func TestTheLastOfALeaseKnowsOfTheLossThatItsReleaseFinds(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		outer := b.acquire(b.locks, "name")
		inner := b.lease(b.locks.Acquire(outer.Context(), "name"))
		b.ok(outer.Release(b.Context()))
		b.ok(b.store.Release(b.Context(), b.link.LastClaim()))
		b.is(inner.Release(b.Context()), core.ErrLost)
		b.is(inner.Err(), core.ErrLost)
		b.is(outer.Err(), core.ErrReleased)
	})
}

func TestWhatIsNoReentryIsARealAcquire(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		derived, err := b.locks.With(core.WithWait(0))
		b.ok(err)
		x := b.acquire(b.locks, "name")
		ctx := x.Context()
		b.gets(derived.Acquire(ctx, "name")) // a derived Locker has the same root
		b.is(second(derived.Acquire(ctx, "name", core.WithoutReentry())), core.ErrHeld)
		b.is(second(b.other().TryAcquire(ctx, "name")), core.ErrHeld) // another root
		b.ok(x.Release(b.Context()))
		if y := b.lease(derived.Acquire(context.WithoutCancel(ctx), "name")); y.Fence() == x.Fence() {
			b.Error("joined a lease that has ended")
		}
	})
}

// Whoever finds that the lease has ended that it was to re-enter lets the next one find that out.
func TestSiblingsOfALeaseThatHasEndedAskForTheName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		inside := context.WithoutCancel(x.Context())
		y := b.lease(b.locks.TryAcquire(inside, "name"))
		var siblings sync.WaitGroup
		for range 3 {
			siblings.Go(func() {
				b.ok(b.locks.Do(inside, "name", func(ctx context.Context) error {
					z, _ := core.FromContext(ctx)
					return z.Check(ctx)
				}, core.WithWait(ttl)))
			})
		}
		synctest.Wait()
		b.ok(x.Release(b.Context()))
		b.ok(y.Release(b.Context()))
		siblings.Wait()

		x = b.acquire(b.locks, "name")
		y = b.lease(b.locks.TryAcquire(x.Context(), "name"))
		sibling := b.begin(func() error {
			return second(b.locks.Acquire(context.WithoutCancel(x.Context()), "name", core.WithWait(ttl)))
		})
		b.store.Lose("name")
		<-y.Context().Done()
		b.is(y.Release(b.Context()), core.ErrLost)
		b.ok(<-sibling)
		b.taken(b.other(), "name") // by the sibling
	})
}

// slow is a context that takes its time to let go of whoever follows it.
type slow struct {
	context.Context

	then func()
}

func (s *slow) AfterFunc(do func()) (stop func() bool) {
	off := context.AfterFunc(s.Context, do)
	return func() bool { s.then(); return off() }
}

// Value hides the context below from package context, which would not follow this one then.
func (s *slow) Value(key any) any {
	if v := s.Context.Value(key); fmt.Sprintf("%T", v) != "*context.cancelCtx" {
		return v
	}
	return nil
}

func TestASecondEndOfAnInnerLeaseWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		outer := b.acquire(b.locks, "name")
		second := make(chan error, 1)
		ctx := &slow{Context: outer.Context()}
		b.ok(b.locks.Do(ctx, "name", func(work context.Context) error {
			inner, _ := core.FromContext(work)
			_ = work.Done() // which makes a context that follows
			ctx.then = func() {
				go func() { second <- inner.Release(b.Context()) }()
				time.Sleep(time.Millisecond)
			}
			return nil
		}))
		b.took(0, 0, func() { b.ok(<-second) })
	})
}

func TestALeaseForgetsThoseThatHaveReenteredItAndEnded(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]core.Option{nil, {core.WithShared()}} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name", opts...)
			for range 10 {
				b.gets(b.locks.TryAcquire(x.Context(), "name", opts...))
			}
			if n := x.Inners(); n != 0 {
				b.Errorf("%d are kept", n)
			}
			b.ok(x.Release(b.Context()))
		})
	}
}
