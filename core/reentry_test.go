package core_test

import (
	"context"
	"sync"
	"sync/atomic"
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

func TestSiblingsInOneLeaseExcludeEachOther(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.ok(b.locks.Do(b.Context(), "name", func(ctx context.Context) error {
			var wg sync.WaitGroup
			var inside atomic.Int32
			for range 10 {
				wg.Go(func() {
					b.is(b.locks.Do(ctx, "name", func(context.Context) error {
						if inside.Add(1) != 1 {
							b.Error("two siblings at once")
						}
						time.Sleep(time.Second)
						inside.Add(-1)
						return nil
					}), nil)
				})
			}
			synctest.Wait()
			b.is(second(b.locks.TryAcquire(ctx, "name")), core.ErrHeld)
			b.is(second(b.locks.Acquire(ctx, "name", core.WithWait(time.Second/2))), core.ErrHeld)
			wg.Wait()
			return nil
		}))
		b.sent(1, lab.OpAcquire)
	})
}

func TestTheNameIsFreedWhenTheLastOfALeaseHasEnded(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other := b.other()
		outer := b.acquire(b.locks, "name")
		inner := b.lease(b.locks.Acquire(outer.Context(), "name"))
		b.ok(outer.Release(b.Context()))
		b.taken(other, "name")
		b.ok(inner.Err())
		time.Sleep(10 * ttl) // renewed all the same
		b.ok(inner.Check(b.Context()))
		b.ok(inner.Release(b.Context()))
		b.ok(b.acquire(other, "name").Release(b.Context()))
	})
}

func TestALossEndsInnerLeasesToo(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		outer := b.acquire(b.locks, "name", core.WithoutRenewal())
		inner := b.lease(b.locks.Acquire(outer.Context(), "name"))
		ctx := inner.Context()
		<-ctx.Done()
		b.reason(inner, core.ReasonExpired)
		b.reason(outer, core.ReasonExpired)
		b.is(inner.Release(b.Context()), core.ErrLost)
		b.is(outer.Release(b.Context()), core.ErrLost)
	})
}

func TestWhatIsNoReentryIsARealAcquire(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		derived, err := b.locks.With(core.WithWait(0))
		b.ok(err)
		x := b.acquire(b.locks, "name")
		b.gets(derived.Acquire(x.Context(), "name")) // a derived Locker has the same root
		b.is(second(derived.Acquire(x.Context(), "name", core.WithoutReentry())), core.ErrHeld)
		b.is(second(b.other().TryAcquire(x.Context(), "name")), core.ErrHeld) // another root
		ctx := x.Context()
		b.ok(x.Release(b.Context()))
		y := b.lease(derived.Acquire(context.WithoutCancel(ctx), "name")) // x has ended
		if y.Fence() == x.Fence() {
			b.Error("joined a lease that has ended")
		}
		b.ok(y.Release(b.Context()))
	})
}

func TestDedupInsideALeaseIsInvalid(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithDedup(time.Hour))
		b.is(second(b.locks.Acquire(x.Context(), "name", core.WithDedup(time.Hour))), core.ErrInvalid)
		inner := b.lease(b.locks.Acquire(x.Context(), "name"))
		b.is(inner.Complete(b.Context()), core.ErrInvalid)
		b.ok(x.Complete(b.Context()))
		b.is(second(b.locks.TryAcquire(b.Context(), "name", core.WithDedup(time.Hour))), core.ErrDuplicate)
	})
}

func TestACompletionWaitsForTheInnerLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		outer := b.acquire(b.locks, "name", core.WithDedup(time.Hour))
		inner := b.lease(b.locks.Acquire(outer.Context(), "name"))
		b.ok(outer.Complete(b.Context()))
		b.taken(b.other(), "name", core.WithDedup(time.Hour))
		b.ok(inner.Release(b.Context()))
		b.is(second(b.other().TryAcquire(b.Context(), "name", core.WithDedup(time.Hour))), core.ErrDuplicate)
	})
}

func TestATryInsideALeaseDoesNotWaitForASibling(t *testing.T) {
	t.Parallel()
	waits := 0
	virtual(t, func(b *bench) {
		b.ok(b.locks.Do(b.Context(), "name", func(ctx context.Context) error {
			return b.locks.Do(ctx, "name", func(context.Context) error {
				b.is(second(b.locks.TryAcquire(ctx, "name")), core.ErrHeld)
				synctest.Wait()
				if waits > 0 {
					b.Errorf("%d wait", waits)
				}
				b.is(second(b.locks.Acquire(ctx, "name", core.WithWait(time.Second))), core.ErrHeld)
				return nil
			})
		}))
		synctest.Wait()
		if waits != 1 {
			b.Errorf("%d wait", waits)
		}
	}, observing(observer{Waiting: func(core.Event) { waits++ }}))
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
				z, err := b.locks.Acquire(inside, "name", core.WithWait(ttl))
				if err != nil {
					b.Error(err)
					return
				}
				b.ok(z.Release(b.Context()))
			})
		}
		synctest.Wait()
		b.ok(x.Release(b.Context()))
		b.ok(y.Release(b.Context()))
		siblings.Wait()
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
