package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func (b *bench) all(l *core.Locker, names ...string) *core.LeaseSet {
	b.Helper()
	return b.set(l.AcquireAll(b.Context(), names, core.WithWait(0)))
}

func TestSeveralNamesAreTakenSortedAndOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.all(b.locks, "c", "a", "b", "a", "c")
		b.sent(3, lab.OpAcquire)
		if !slices.Equal(x.Names(), []string{"a", "b", "c"}) || x.Lease("a").Name() != "a" || x.Lease("z") != nil || x.Degraded() {
			b.Errorf("%q", x.Names())
		}
		if text := fmt.Sprintf("%+v", x); text != `leases(["a" "b" "c"])` {
			b.Error(text)
		}
		last := uint64(0)
		for _, name := range x.Names() {
			f, err := core.FenceFor(x.Context(), name)
			if err != nil || f != x.Lease(name).Fence() || f <= last { // minted in order
				b.Errorf("the context says fence %d of %q, after %d, %v", f, name, last, err)
			}
			last = f
		}
		b.ok(x.Release(b.Context()))
		b.ok(x.Release(b.Context()))
		b.is(context.Cause(x.Context()), context.Canceled)
		b.sent(3, lab.OpRelease)
	})
}

func TestALossOfOneOfSeveralNamesIsALossOfTheLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.all(b.locks, "a", "b", "c")
		b.store.Lose("c") // an operator deletes it
		<-x.Context().Done()
		for _, err := range []error{x.Err(), context.Cause(x.Context()), core.Confirm(x.Context()), x.Release(b.Context()), x.Err()} {
			b.lostBecause(err, "c", core.ReasonTaken)
		}
		b.ok(b.all(b.other(), "a", "b", "c").Release(b.Context())) // the others were given back
	})
}

func TestASetOfWhichOneIsReleasedIsReleased(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		s := b.all(b.locks, "a", "b")
		b.ok(s.Lease("a").Release(b.Context()))
		b.is(s.Err(), core.ErrReleased)
		b.ok(s.Release(b.Context()))

		s = b.all(b.locks, "a", "b")
		b.ok(s.Lease("b").Release(b.Context()))
		b.store.Lose("a")
		<-s.Lease("a").Context().Done()
		b.is(s.Err(), core.ErrLost) // though b is not
	})
}

func TestASetThatIsGivenBackLeavesWhatItHasReentered(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "b")
		x := b.acquire(b.locks, "a", core.WithMinHold(time.Minute))
		b.is(second(b.locks.AcquireAll(x.Context(), pair, core.WithWait(0))), core.ErrHeld)
		b.ok(x.Release(b.Context()))
		b.taken(b.other(), "a") // for its time
	})
}

func TestTheNameWithTheLeastTimeCounts(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(500*time.Millisecond, 0)
		began := time.Now()
		x := b.set(b.locks.AcquireAll(b.Context(), []string{"a", "b", "c"}, core.WithoutRenewal()))
		b.link.Heal()
		b.validFor(x, began, 1500*time.Millisecond+ttl-drift)
		time.Sleep(ttl * 6 / 10)
		b.ok(core.Confirm(x.Context())) // which renews all of them
		b.validFor(x, time.Now(), ttl-drift)
		b.link.All(lab.Refused)
		time.Sleep(ttl * 9 / 10)
		b.lostBecause(core.Confirm(x.Context()), "c", core.ReasonUnreachable)
		b.link.Heal()
		b.ok(x.Release(b.Context()))
	})
}

func TestInsideALeaseOnlyGreaterNamesAreWaitedFor(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other := b.other()
		theirs := b.all(other, "a", "z")
		inside := b.acquire(b.locks, "m")
		ctx := inside.Context()
		b.took(0, 0, func() {
			b.is(second(b.locks.AcquireAll(ctx, []string{"a", "b"})), core.ErrHeld)
			b.is(second(b.locks.AcquireAll(ctx, []string{"b", "m", "a"})), core.ErrHeld)
			b.is(second(b.locks.AcquireAll(ctx, []string{"m", "n"}, core.WithoutReentry())), core.ErrHeld)
			set := b.all(b.locks, "x", "y") // which counts as one
			b.is(second(b.locks.AcquireAll(set.Context(), []string{"a"})), core.ErrHeld)
			within := b.set(b.locks.AcquireAll(set.Context(), []string{"x"}))
			waits := b.begin(func() error { return b.locks.DoAll(set.Context(), []string{"x"}, noWork) })
			b.ok(within.Release(b.Context()))
			b.ok(<-waits)
			sibling, inner := b.lease(b.locks.TryAcquire(ctx, "m")), b.lease(b.locks.TryAcquire(ctx, "n"))
			b.is(second(b.locks.AcquireAll(inner.Context(), []string{"m"})), core.ErrHeld)
			further := b.set(b.locks.AcquireAll(ctx, []string{"n1", "n2"})) // inside m, too
			b.is(second(b.locks.AcquireAll(further.Context(), []string{"m"})), core.ErrHeld)
			b.ok(further.Release(b.Context()))
			b.ok(sibling.Release(b.Context()))
			b.ok(inner.Release(b.Context()))
		})
		time.AfterFunc(3*time.Second, func() { _ = theirs.Release(context.Background()) })
		b.took(3*time.Second, 0, func() {
			b.gets(b.locks.AcquireAll(ctx, []string{"z", "b", "n"})) // b is free
		})
		b.ok(inside.Release(b.Context()))
		synctest.Wait() // theirs are all released
		smaller := b.acquire(other, "a")
		time.AfterFunc(time.Second, func() { _ = smaller.Release(context.Background()) })
		b.took(time.Second, 0, func() { // what was given back does not count
			elsewhere := b.lease(b.other().TryAcquire(context.WithoutCancel(ctx), "z")) // nor what another Locker has
			b.gets(b.locks.AcquireAll(elsewhere.Context(), []string{"a", "b"}))
		})
	})
}

func TestAReentryThatIsNearlyOverIsNotTakenAnewForEver(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "b", core.WithoutRenewal())
		time.Sleep(ttl * 7 / 10)
		sent := b.commands()
		y := b.set(b.locks.AcquireAll(x.Context(), []string{"a", "b", "c"}))
		b.sent(sent + 2)
		if until := y.ValidUntil(); !until.Equal(x.ValidUntil()) || !until.Before(y.Lease("a").ValidUntil()) {
			b.Errorf("until %s, and the first of its leases until %s", until, x.ValidUntil())
		}
		b.ok(y.Release(b.Context()))
	})
}

// The last name is renewed as the lease that was re-entered is lost.
func TestASetIsNotWholeIfWhatItReentersIsLostMeanwhile(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "a", core.WithMaxHold(time.Second))
		time.Sleep(950 * time.Millisecond)
		b.link.Delay(20*time.Millisecond, 20*time.Millisecond)
		err := second(b.locks.AcquireAll(context.WithoutCancel(x.Context()), pair, core.WithoutRenewal(), core.WithWait(0)))
		b.says(err, core.ErrUnavailable, "too late to be trusted")
	})
}

func TestTheLossOfALeaseAroundEndsTheWaitForSeveralNames(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "b", core.WithoutRenewal())
		b.acquire(b.other(), "c")
		b.took(ttl-drift, 0, func() {
			b.is(second(b.locks.AcquireAll(x.Context(), []string{"c", "d"})), context.Canceled, core.ErrHeld)
		})
	})
}

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

func TestCompleteOfASetMarksTheWorkOnAllItsNamesInTheirOrder(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		dedup := core.WithDedup(time.Hour)
		b.is(b.locks.DoAll(b.Context(), pair, func(ctx context.Context) error {
			b.store.Lose("b") // so it may not be done
			<-ctx.Done()
			return nil
		}, dedup), core.ErrLost)
		s := b.set(b.locks.AcquireAll(b.Context(), pair, dedup))
		b.ok(s.Complete(b.Context()))
		b.is(s.Err(), core.ErrReleased)
		b.ok(s.Complete(b.Context())) // as before
		b.is(b.locks.DoAll(b.Context(), pair, noWork, dedup), core.ErrDuplicate)
		for _, names := range [][]string{{"a", "b"}, {"0", "b"}, {"a", "c"}} {
			b.gets(b.locks.AcquireAll(b.Context(), names, dedup))
		}
		b.is(b.all(b.locks, pair...).Complete(b.Context()), core.ErrInvalid)
		b.pairIsFree()
		for _, name := range pair { // that is other work
			b.ok(b.locks.Do(b.Context(), name, noWork, dedup))
			b.is(b.locks.DoAll(b.Context(), []string{name, name}, noWork, dedup), core.ErrDuplicate) // and this is no other
		}
	})
}

// What was granted last is given back beside the others, not before them.
func TestASetWhoseCallerLeavesIsGivenBackWithinTheTimeOfOneName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		locks := b.locker(&hooked{
			Driver: b.store,
			acquire: func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if c.Name == "b" {
					cancel()
				}
				return b.store.Acquire(ctx, c)
			},
			release: func(ctx context.Context, c driver.Claim) error {
				time.Sleep(time.Second)
				return b.store.Release(ctx, c)
			},
		})
		b.took(40*time.Millisecond, 0, func() { b.is(second(locks.AcquireAll(ctx, pair)), context.Canceled) })
	})
}

// Finish has all of its time, whoever leaves meanwhile.
func TestALossThatOnlyTheReleaseFindsIsToldThoughTheCallerLeaves(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		s := b.set(b.locks.AcquireAll(ctx, pair))
		b.store.Lose("a")
		b.link.Delay(300*time.Millisecond, 300*time.Millisecond)
		time.AfterFunc(300*time.Millisecond, cancel)
		b.is(s.Finish(s.Context(), nil), core.ErrLost)
	})
}

func TestASetThatLosesANameAfterItsTimeSaysSo(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var first driver.Claim
		losses := 2
		locks := b.locker(&hooked{Driver: b.store, acquire: func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			if c.Name == "a" {
				first = c
			} else if losses--; losses >= 0 {
				b.ok(b.store.Release(ctx, first))
			}
			return b.store.Acquire(ctx, c)
		}})
		b.says(second(locks.AcquireAll(b.Context(), pair, core.WithWait(0), core.WithoutRenewal())), core.ErrUnavailable, "too late to be trusted")
		b.gets(locks.AcquireAll(b.Context(), pair, core.WithWait(time.Minute), core.WithoutRenewal())) // in a second round
	})
}

func TestTheEndOfTheCallerLeavesNoNameBehind(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.other(), "b")
		ctx := b.in(3 * time.Second)
		b.took(3*time.Second, 0, func() {
			err := second(b.locks.AcquireAll(ctx, []string{"a", "b"}, core.WithMinHold(minHold)))
			b.is(err, context.DeadlineExceeded, core.ErrHeld)
		})
		b.acquire(b.other(), "a")
	})
}

func TestASetIsStoppedOnceItsTimeIsOver(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		s := b.set(b.locks.AcquireAll(b.Context(), pair, core.WithMaxHold(time.Second)))
		b.took(time.Second, 0, func() { <-s.Context().Done() })
		b.lostBecause(context.Cause(s.Context()), "a", core.ReasonMaxHold)
		b.is(s.Release(b.Context()), core.ErrLost)
	})
}
