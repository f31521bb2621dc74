package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestAHeldErrorSaysThatThisProcessHasTheName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		work := noWork
		b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
			time.Sleep(3 * time.Second)
			for what, call := range map[string]func() error{
				"once":            func() error { return second(b.locks.TryAcquire(context.Background(), "a")) },
				"with a budget":   func() error { return b.locks.Do(context.Background(), "a", work, core.WithWait(time.Second)) },
				"with a deadline": func() error { return b.locks.Do(b.in(time.Second), "a", work) },
			} {
				held, ok := errors.AsType[*core.HeldError](call())
				if !ok || !held.Here || held.HeldFor < 3*time.Second || held.Label != "me" {
					b.Errorf("%s: %+v", what, held)
				}
			}
			// A sibling has passed on the context.
			inner := b.acquireIn(ctx, "a")
			held, ok := errors.AsType[*core.HeldError](second(b.locks.TryAcquire(ctx, "a")))
			if !ok || held.Here {
				b.Errorf("a sibling: %+v", held)
			}
			b.ok(inner.Release(ctx))
			// Another process has not.
			held, ok = errors.AsType[*core.HeldError](second(b.other().TryAcquire(b.Context(), "a")))
			if !ok || held.Here {
				b.Errorf("another process: %+v", held)
			}
			return nil
		}, core.WithLabel("me")))
		err := &core.HeldError{Name: "a", Label: "me", Here: true, HeldFor: 3 * time.Second}
		if want := `holdfast: "a" is held by "me", in this process for 3s; inside its work, pass on the context of the lease, or use AcquireAll`; err.Error() != want {
			b.Errorf("%q", err)
		}
	})
}

// Both came while the holder was still asking. He has left as their time ends, and the service has said nothing since.
func TestACallThatThisProcessKeptWaitingIsToldThatTheNameWasHeld(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(time.Millisecond, time.Millisecond)
		var all sync.WaitGroup
		all.Go(func() {
			b.ok(b.locks.Do(b.Context(), "a", func(context.Context) error { time.Sleep(5 * time.Second); return nil }))
		})
		synctest.Wait()
		b.link.Drop(lab.OpWait)
		all.Go(func() {
			err := second(b.locks.Acquire(b.Context(), "a", core.WithWait(5100*time.Millisecond)))
			b.is(err, core.ErrHeld)
			b.isNot(err, core.ErrUnavailable)
		})
		all.Go(func() {
			err := second(b.locks.Acquire(b.in(5100*time.Millisecond), "a"))
			b.is(err, core.ErrHeld, context.DeadlineExceeded)
			b.isNot(err, core.ErrUnavailable)
		})
		all.Wait()
		b.link.Heal()
	})
}

func (b *bench) acquireIn(ctx context.Context, name string) *core.Lease {
	b.Helper()
	x := b.lease(b.locks.TryAcquire(ctx, name))
	return x
}
