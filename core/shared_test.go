package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func TestReadersOfOneProcessDoNotAskOneAfterTheOther(t *testing.T) {
	t.Parallel()
	each(t, map[string]time.Duration{"that wait": core.WaitForever, "that try": 0}, func(b *bench, wait time.Duration) {
		b.link.Delay(100*time.Millisecond, 0)
		var wg sync.WaitGroup
		b.took(200*time.Millisecond, 0, func() { // there and back
			for range 50 {
				wg.Go(func() { b.ok(b.locks.Do(b.Context(), "name", noWork, core.WithShared(), core.WithWait(wait))) })
			}
			wg.Wait()
		})
	})
}

func TestReentryNeedsTheSameModeOrAWeakerOne(t *testing.T) {
	t.Parallel()
	none, plain, shared, three, four := core.WithTTL(ttl), core.WithLimit(1), core.WithShared(), core.WithLimit(3), core.WithLimit(4)
	for i, row := range []struct {
		outer, inner core.Option
		want         error
	}{
		{none, plain, nil}, {plain, none, nil}, {plain, plain, nil}, {plain, shared, nil}, {plain, three, core.ErrInvalid},
		{shared, shared, nil}, {shared, plain, core.ErrInvalid}, {shared, three, core.ErrInvalid},
		{three, three, nil}, {three, four, core.ErrInvalid}, {three, plain, core.ErrInvalid}, {three, shared, core.ErrInvalid},
	} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name", row.outer)
			if err := b.locks.Do(x.Context(), "name", noWork, row.inner); !errors.Is(err, row.want) {
				b.Errorf("row %d: %v", i, err)
			}
			b.sent(1)
			b.ok(x.Check(b.Context()))
		})
	}
}

func TestObserversAreToldWhereLimitsDiffer(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var told []core.Event
		locks := b.other(observing(observer{core.EventLimited: func(e core.Event) { told = append(told, e) }}), core.WithTemplate("{name}"))
		b.acquire(b.locks, "name", core.WithLimit(2))
		b.acquire(locks, "name", core.WithLimit(5))
		b.is(second(locks.Acquire(b.in(time.Minute), "name", core.WithLimit(5))), core.ErrHeld, context.DeadlineExceeded)
		b.taken(locks, "name", core.WithLimit(5))
		b.acquire(b.locks, "same", core.WithLimit(5))
		b.acquire(locks, "same", core.WithLimit(5))
		synctest.Wait()
		if len(told) != 3 { // once for each call
			b.Errorf("told %d times", len(told))
		}
		for _, e := range told {
			if e.Asked != 5 || e.Counts != 2 || e.Name != "name" || e.Template != "{name}" {
				b.Errorf("told %+v", e)
			}
		}
	})
}
