package core_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestOneLeaseMoreThanTheProcessMayHaveIsRefusedUnasked(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		derived, err := b.locks.With(core.WithTTL(ttl))
		b.ok(err)
		x, y := b.acquire(b.locks, "a"), b.acquire(derived, "b")
		asked := b.link.Calls(lab.OpAcquire)
		for _, acquire := range []func() error{
			func() error { _, err := b.locks.TryAcquire(b.Context(), "c"); return err },
			func() error { _, err := derived.Acquire(b.Context(), "c"); return err },
			func() error { return b.locks.Do(b.Context(), "c", func(context.Context) error { panic("ran") }) },
		} {
			err := acquire()
			b.is(err, core.ErrUnavailable)
			b.isNot(err, core.ErrHeld)
			if err == nil || !strings.Contains(err.Error(), "WithMaxLeases(2)") {
				b.Errorf("%v does not say why", err)
			}
		}
		if n := b.link.Calls(lab.OpAcquire); n != asked {
			b.Errorf("%d commands", n-asked)
		}
		b.gets(b.locks.Acquire(x.Context(), "a"))
		b.ok(y.Release(b.Context()))
		b.ok(b.acquire(b.locks, "c").Release(b.Context()))
		b.ok(x.Release(b.Context()))
	}, core.WithMaxLeases(2))
}

func TestOneCallMoreThanMayWaitIsRefusedUnasked(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other := b.other()
		held := []*core.Lease{b.acquire(other, "a"), b.acquire(other, "b")}
		var waiting sync.WaitGroup
		for _, name := range []string{"a", "a", "b"} {
			waiting.Go(func() {
				b.gets(b.locks.Acquire(b.Context(), name))
			})
		}
		synctest.Wait()
		_, err := b.locks.Acquire(b.Context(), "c")
		b.is(err, core.ErrUnavailable)
		if err == nil || !strings.Contains(err.Error(), "WithMaxWaiters(3)") {
			b.Errorf("%v does not say why", err)
		}
		b.ok(b.acquire(b.locks, "c").Release(b.Context())) // who does not wait
		for _, x := range held {
			b.ok(x.Release(b.Context()))
		}
		waiting.Wait()
		b.gets(b.locks.Acquire(b.Context(), "c"))
	}, core.WithMaxWaiters(3))
}

func TestACapBelowOneIsInvalid(t *testing.T) {
	t.Parallel()
	for _, o := range []core.NewOption{core.WithMaxLeases(0), core.WithMaxWaiters(-1), nil} {
		if _, err := core.New(memlock.New(), o); !errors.Is(err, core.ErrInvalid) {
			t.Error(err)
		}
	}
}
