package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestAHeldErrorSaysThatThisProcessHasTheName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.ok(b.locks.Do(b.Context(), "a", func(ctx context.Context) error {
			time.Sleep(3 * time.Second)
			for _, err := range []error{
				second(b.locks.TryAcquire(context.Background(), "a")),
				b.locks.Do(context.Background(), "a", noWork, core.WithWait(time.Second)),
				b.locks.Do(b.in(time.Second), "a", noWork),
			} {
				if held := b.heldBy(err); !held.Here || held.HeldFor < 3*time.Second || held.Label != "me" {
					b.Errorf("%+v", held)
				}
			}
			inner := b.lease(b.locks.TryAcquire(ctx, "a"))
			for _, err := range []error{
				second(b.locks.TryAcquire(ctx, "a")),                    // a sibling has passed on the context
				second(b.other().TryAcquire(context.Background(), "a")), // another process has not
			} {
				if held := b.heldBy(err); held.Here {
					b.Errorf("%+v", held)
				}
			}
			return inner.Release(ctx)
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
		work := b.begin(func() error {
			return b.locks.Do(b.Context(), "a", func(context.Context) error { time.Sleep(5 * time.Second); return nil })
		})
		b.link.Drop(lab.OpWait)
		const life = 5100 * time.Millisecond
		budget := b.begin(func() error { return second(b.locks.Acquire(b.Context(), "a", core.WithWait(life))) })
		deadline := b.begin(func() error { return second(b.locks.Acquire(b.in(life), "a")) })
		b.ok(<-work)
		for _, err := range []error{<-budget, <-deadline} {
			b.is(err, core.ErrHeld)
			b.isNot(err, core.ErrUnavailable)
		}
	})
}
