package core_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/core"
)

func TestOneLeaseMoreThanTheProcessMayHaveIsRefusedUnasked(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		derived, err := b.locks.With(core.WithTTL(ttl))
		b.ok(err)
		x, y := b.acquire(b.locks, "a"), b.acquire(derived, "b")
		asked := b.commands()
		for _, err := range []error{
			second(b.locks.TryAcquire(b.Context(), "c")), second(derived.Acquire(b.Context(), "c")),
			b.locks.Do(b.Context(), "c", func(context.Context) error { panic("ran") }),
		} {
			b.says(err, core.ErrUnavailable, "WithMaxLeases(2)")
			b.isNot(err, core.ErrHeld)
		}
		b.sent(asked)
		b.gets(b.locks.Acquire(x.Context(), "a"))
		b.ok(y.Release(b.Context()))
		b.ok(b.acquire(b.locks, "c").Release(b.Context()))
	}, core.WithMaxLeases(2))
}

func TestOneCallMoreThanMayWaitIsRefusedUnasked(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		held := b.all(b.other(), "a", "b")
		var waiting sync.WaitGroup
		for _, name := range []string{"a", "a", "b"} {
			waiting.Go(func() { b.gets(b.locks.Acquire(b.Context(), name)) })
		}
		synctest.Wait()
		b.says(second(b.locks.Acquire(b.Context(), "c")), core.ErrUnavailable, "WithMaxWaiters(3)")
		b.ok(b.acquire(b.locks, "c").Release(b.Context())) // who does not wait
		b.ok(held.Release(b.Context()))
		waiting.Wait()
		b.gets(b.locks.Acquire(b.Context(), "c"))
	}, core.WithMaxWaiters(3))
}
