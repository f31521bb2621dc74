package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestEveryErrorThatACallReturnsHasItsKind(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		want := func(kind core.Kind, err error) {
			b.Helper()
			for _, err := range []error{err, fmt.Errorf("wrapped: %w", err), errors.Join(errWork, err)} {
				if got := core.KindOf(err); got != kind {
					b.Errorf("kind %d of %v, want %d", got, err, kind)
				}
			}
		}
		gone, cancel := context.WithCancel(b.Context())
		cancel()

		if kind := core.KindOf(nil); kind != core.KindOther {
			b.Errorf("kind %d of nil", kind)
		}
		want(core.KindOther, errWork)
		want(core.KindOther, context.Canceled) // by itself it is the work's
		want(core.KindInvalid, second(b.locks.Acquire(b.Context(), "{}")))
		want(core.KindEnded, second(b.locks.Acquire(gone, "name")))

		x := b.acquire(b.locks, "name")
		want(core.KindHeld, second(b.locks.TryAcquire(b.Context(), "name")))
		brief := b.in(time.Second)
		want(core.KindHeld, second(b.other().Acquire(brief, "name"))) // the end of a context is joined with what is known
		synctest.Wait()                                               // it leaves its place in the background
		b.ok(x.Release(b.Context()))
		want(core.KindReleased, x.Err())

		b.ok(b.locks.Do(b.Context(), "job", noWork, core.WithDedup(time.Hour)))
		want(core.KindDuplicate, b.locks.Do(b.Context(), "job", noWork, core.WithDedup(time.Hour)))

		x = b.acquire(b.locks, "name", core.WithoutRenewal())
		time.Sleep(ttl)
		want(core.KindLost, x.Err())
		want(core.KindLost, x.Finish(b.Context(), core.ErrHeld)) // a loss comes before what the work has returned

		b.link.All(lab.RequestLost)
		soon := b.in(time.Second)
		want(core.KindEnded, second(b.locks.Acquire(soon, "silent")))
		b.link.All(lab.Refused)
		want(core.KindUnavailable, second(b.locks.TryAcquire(b.Context(), "name")))
		b.ok(b.locks.Close(b.Context()))
		want(core.KindClosed, second(b.locks.TryAcquire(b.Context(), "name")))
	})
}

func TestFenceForIsThatOfTheNameAndNeverZeroWithoutAnError(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		is := func(ctx context.Context, name string, want uint64, err error) {
			b.Helper()
			fence, got := core.FenceFor(ctx, name)
			if b.is(got, err); fence != want {
				b.Errorf("%d (%v), want %d", fence, got, want)
			}
		}
		is(b.Context(), "name", 0, core.ErrInvalid)
		outer := b.acquire(b.locks, "name")
		is(outer.Context(), "other", 0, core.ErrInvalid)
		between := b.lease(b.locks.TryAcquire(outer.Context(), "other"))
		is(between.Context(), "name", outer.Fence(), nil)
		is(between.Context(), "other", between.Fence(), nil)
		b.ok(outer.Release(b.Context()))
		is(between.Context(), "name", outer.Fence(), nil) // of what has ended too: its fence refuses what comes late

		again := b.acquire(b.locks, "name")
		under := b.lease(b.locks.TryAcquire(between.Context(), "third", core.WithLimit(2)))
		is(under.Context(), "third", 0, core.ErrInvalid)
		if again.Fence() <= outer.Fence() {
			b.Errorf("fence %d after %d", again.Fence(), outer.Fence())
		}
	})
}

func TestRetryAfterIsNoLaterThanTheEndOfTheLeaseIfThatIsKnown(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "name", core.WithTTL(300*time.Millisecond), core.WithoutRenewal())
		if held := b.refused(b.locks, "name"); held.RetryAfter > 300*time.Millisecond {
			b.Errorf("%+v", held)
		}
		locks := b.locker(&hooked{Driver: b.store, acquire: func(context.Context, driver.Claim) (driver.Grant, error) {
			return driver.Grant{}, &driver.Held{} // by somebody who has set no TTL
		}})
		if held := b.refused(locks, "name"); held.RetryAfter < time.Second/2 {
			b.Errorf("nobody knows for how long: %+v", held)
		}
	})
}

func TestKindsPrintWords(t *testing.T) {
	t.Parallel()
	for kind, want := range map[fmt.Stringer]string{
		core.KindOther: "other", core.KindUnavailable: "unavailable", core.KindLost: "lost", core.Kind(9): "Kind(9)",
		core.EventKind(0): "EventKind(0)", core.EventAcquired: "acquired", core.EventRenewed: "renewed", core.EventDegraded: "degraded",
		core.EventKind(15): "EventKind(15)",
	} {
		if got := kind.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Whoever reads that a release was not answered is not sent to look at the address, if the backend knows better.
func TestWhatABackendKnowsOfASilenceIsTold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		full := &hooked{Driver: b.store, release: func(context.Context, driver.Claim) error {
			return driver.Because(context.DeadlineExceeded, "the pool is full")
		}}
		err := b.acquire(b.locker(full), "name").Release(b.Context())
		if b.says(err, core.ErrUnavailable, "the pool is full"); strings.Contains(err.Error(), "address") {
			b.Error(err)
		}
	})
}
