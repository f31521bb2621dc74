package core_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func (b *bench) reader(l *core.Locker, name string) *core.Lease {
	b.Helper()
	return b.acquire(l, name, core.WithShared())
}

func TestReadersHoldANameTogetherAndWritersAlone(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other := b.other()
		readers := []*core.Lease{b.reader(b.locks, "name"), b.reader(b.locks, "name"), b.reader(other, "name")}
		for _, l := range []*core.Locker{b.locks, other} {
			b.taken(l, "name")
		}
		time.Sleep(5 * ttl) // all are renewed
		for _, x := range readers {
			b.ok(x.Err())
			b.ok(x.Check(b.Context()))
			b.ok(core.Confirm(x.Context()))
			b.ok(x.Release(b.Context()))
		}
		writer := b.acquire(other, "name")
		b.taken(b.locks, "name", core.WithShared())
		if readers[0].Fence() >= writer.Fence() || readers[0].Fence() == 0 {
			b.Errorf("fences %d and %d", readers[0].Fence(), writer.Fence())
		}
		b.ok(writer.Release(b.Context()))
		after := b.reader(b.locks, "name")
		if after.Fence() <= writer.Fence() {
			b.Errorf("a reader's fence %d after a writer's %d", after.Fence(), writer.Fence())
		}
		b.ok(after.Release(b.Context()))
	})
}

func TestReadersOfOneProcessDoNotAskOneAfterTheOther(t *testing.T) {
	t.Parallel()
	each(t, map[string][]core.Option{"that wait": {core.WithShared()}, "that try": {core.WithShared(), core.WithWait(0)}}, func(b *bench, opts []core.Option) {
		b.link.Delay(100*time.Millisecond, 0)
		var wg sync.WaitGroup
		b.took(200*time.Millisecond, 0, func() { // there and back
			for range 50 {
				wg.Go(func() {
					b.is(b.locks.Do(b.Context(), "name", noWork, opts...), nil)
				})
			}
			wg.Wait()
		})
	})
}

func TestReadersThatKeepComingDoNotStarveAWriter(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 6 { // there is always one of them inside
			locks := b.locks
			if i%2 == 0 {
				locks = b.other()
			}
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				for {
					select {
					case <-stop:
						return
					default:
						b.is(locks.Do(b.Context(), "name", func(context.Context) error { time.Sleep(time.Second); return nil }, core.WithShared()), nil)
					}
				}
			})
		}
		time.Sleep(5 * time.Second)
		for _, l := range []*core.Locker{b.locks, b.other()} {
			b.took(0, 2*time.Second, func() {
				b.gets(l.Acquire(b.Context(), "name"))
			})
		}
		close(stop)
		wg.Wait()
	})
}

func TestReentryNeedsTheSameModeOrAWeakerOne(t *testing.T) {
	t.Parallel()
	plain, shared, three, four := core.WithLimit(1), core.WithShared(), core.WithLimit(3), core.WithLimit(4)
	rows := []struct {
		outer, inner core.Option
		joins        bool
	}{
		{plain, plain, true}, {plain, shared, true}, {plain, three, false},
		{shared, shared, true}, {shared, plain, false}, {shared, three, false},
		{three, three, true}, {three, four, false}, {three, plain, false}, {three, shared, false},
	}
	virtual(t, func(b *bench) {
		for i, row := range rows {
			x := b.acquire(b.locks, "name", row.outer)
			asked := b.link.Calls(lab.OpAcquire)
			y, err := b.locks.Acquire(x.Context(), "name", row.inner)
			if row.joins {
				b.ok(err)
				b.ok(y.Release(b.Context()))
			} else {
				b.is(err, core.ErrInvalid)
			}
			if b.link.Calls(lab.OpAcquire) != asked {
				b.Errorf("row %d: asked the backend", i)
			}
			b.ok(x.Check(b.Context()))
			b.ok(x.Release(b.Context()))
		}
	})
}

func TestSiblingsInsideAReadersLeaseReadTogether(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.reader(b.locks, "name")
		one := b.lease(b.locks.TryAcquire(x.Context(), "name", core.WithShared()))
		two := b.lease(b.locks.TryAcquire(x.Context(), "name", core.WithShared()))
		b.ok(x.Release(b.Context()))
		b.ok(one.Release(b.Context()))
		b.taken(b.other(), "name") // the last of them frees it
		b.ok(two.Release(b.Context()))
		b.ok(b.acquire(b.other(), "name").Release(b.Context()))
	})
}

func TestObserversAreToldWhereLimitsDiffer(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var told []core.Event
		var mu sync.Mutex
		locks := b.other(observing(observer{Limited: func(e core.Event) {
			mu.Lock()
			told = append(told, e)
			mu.Unlock()
		}}), core.WithTemplate("{name}"))
		small := b.acquire(b.locks, "name", core.WithLimit(2))
		x := b.acquire(locks, "name", core.WithLimit(5))
		ctx := b.in(time.Minute)
		b.is(second(locks.Acquire(ctx, "name", core.WithLimit(5))), core.ErrHeld, context.DeadlineExceeded)
		same := b.acquire(b.locks, "same", core.WithLimit(5))
		b.ok(b.acquire(locks, "same", core.WithLimit(5)).Release(b.Context()))
		synctest.Wait()
		if len(told) != 2 { // once for each call
			b.Errorf("told %d times", len(told))
		}
		for _, e := range told {
			if e.Asked != 5 || e.Counts != 2 || e.Name != "name" || e.Template != "{name}" {
				b.Errorf("told %+v", e)
			}
		}
		for _, x := range []*core.Lease{small, x, same} {
			b.ok(x.Release(b.Context()))
		}
	})
}

func TestSeveralNamesAreReadTogether(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var leases []*core.LeaseSet
		for range 2 {
			x := b.set(b.locks.AcquireAll(b.Context(), []string{"b", "a"}, core.WithShared(), core.WithWait(0)))
			leases = append(leases, x)
		}
		_, err := b.other().AcquireAll(b.Context(), []string{"a", "c"}, core.WithWait(0))
		if held, ok := errors.AsType[*core.HeldError](err); !ok || held.Name != "a" {
			b.Errorf("%v", err)
		}
		for _, x := range leases {
			b.ok(x.Release(b.Context()))
		}
	})
}

func TestALimitIsKeptAcrossProcessesAndServedInOrder(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		const limit, callers = 3, 12
		lockers := []*core.Locker{b.locks, b.other()}
		var inside atomic.Int32
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				b.is(lockers[i%2].Do(b.Context(), "name", func(ctx context.Context) error {
					if n := inside.Add(1); n > limit {
						b.Errorf("%d at once", n)
					}
					if _, err := core.FenceFor(ctx, "name"); !errors.Is(err, core.ErrInvalid) {
						b.Error("a permit has a fence")
					}
					time.Sleep(time.Minute)
					inside.Add(-1)
					return nil
				}, core.WithLimit(limit)), nil)
			})
		}
		b.took(callers/limit*time.Minute, time.Second, wg.Wait) // all places are in use all the time
	})
}
