package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

var pair = []string{"b", "a"}

func (b *bench) pairIsFree() {
	b.Helper()
	b.ok(b.all(b.other(), pair...).Release(b.Context()))
}

func TestDoAllHoldsAllNamesWhileItsWorkRuns(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.is(b.locks.DoAll(b.Context(), pair, nil), core.ErrInvalid)
		b.is(b.locks.DoAll(b.Context(), nil, noWork), core.ErrInvalid)
		b.is(b.locks.DoAll(b.Context(), pair, func(ctx context.Context) error {
			for _, name := range pair {
				b.taken(b.other(), name)
				if _, err := core.FenceFor(ctx, name); err != nil {
					b.Error(err)
				}
			}
			b.ok(core.Confirm(ctx))
			return errWork
		}), errWork)
		b.pairIsFree()
	})
}

func TestCompleteOfASetMarksTheWorkOnAllItsNames(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		dedup := core.WithDedup(time.Hour)
		s := b.set(b.locks.AcquireAll(b.Context(), pair, dedup))
		b.ok(s.Complete(b.Context()))
		b.is(s.Err(), core.ErrReleased)
		b.ok(s.Complete(b.Context())) // as before
		b.is(b.locks.DoAll(b.Context(), pair, noWork, dedup), core.ErrDuplicate)
		for _, name := range pair { // that is other work
			b.ok(b.locks.Do(b.Context(), name, noWork, dedup))
		}
	})
}
