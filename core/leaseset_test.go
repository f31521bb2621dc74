package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func (b *bench) all(l *core.Locker, names ...string) *core.LeaseSet {
	b.Helper()
	x := b.set(l.AcquireAll(b.Context(), names, core.WithWait(0)))
	return x
}

func TestSeveralNamesAreTakenSortedAndOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.all(b.locks, "c", "a", "b", "a", "c")
		b.sent(3, lab.OpAcquire)
		if !slices.Equal(x.Names(), []string{"a", "b", "c"}) || x.Lease("a").Name() != "a" || x.Lease("z") != nil {
			b.Errorf("%q", x.Names())
		}
		if a, c := x.Lease("a").Fence(), x.Lease("b").Fence(); a == 0 || a >= c { // minted in order
			b.Errorf("fences %d, %d", a, c)
		}
		if text := fmt.Sprintf("%+v", x); text != `leases(["a" "b" "c"])` {
			b.Error(text)
		}
		for _, name := range x.Names() {
			if f, err := core.FenceFor(x.Context(), name); err != nil || f != x.Lease(name).Fence() {
				b.Errorf("the context says fence %d of %q, %v", f, name, err)
			}
		}
		b.ok(x.Release(b.Context()))
		b.ok(x.Release(b.Context()))
		b.is(context.Cause(x.Context()), context.Canceled)
		b.sent(3, lab.OpRelease)
	})
}

func TestNoNamesAndImpossibleOnesAreRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for _, names := range [][]string{nil, {}, {"a", ""}, {"a", "{"}, {"a", strings.Repeat("x", 201)}} {
			b.is(second(b.locks.AcquireAll(b.Context(), names)), core.ErrInvalid)
		}
		b.is(second(b.locks.AcquireAll(b.Context(), []string{"a", "b"}, core.WithTTL(1))), core.ErrInvalid)
		b.sent(0, lab.OpAcquire)
	})
}

func TestALossOfOneOfSeveralNamesIsALossOfTheLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.all(b.locks, "a", "b", "c")
		b.ok(b.store.Release(b.Context(), b.link.LastClaim())) // an operator deletes c
		<-x.Context().Done()
		for _, err := range []error{x.Err(), context.Cause(x.Context()), core.Confirm(x.Context())} {
			if lost, ok := errors.AsType[*core.LostError](err); !ok || lost.Name != "c" || lost.Reason != core.ReasonTaken {
				b.Errorf("%v", err)
			}
		}
		b.is(x.Release(b.Context()), core.ErrLost)
		if lost, ok := errors.AsType[*core.LostError](x.Err()); !ok || lost.Reason != core.ReasonTaken {
			b.Errorf("%v", lost)
		}
		b.ok(b.all(b.other(), "a", "b", "c").Release(b.Context())) // the others were given back
	})
}

func TestASetIsStoppedOnceItsTimeIsOver(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		s := b.set(b.locks.AcquireAll(b.Context(), []string{"a", "b"}, core.WithMaxHold(time.Second)))
		time.Sleep(time.Second)
		synctest.Wait()
		if lost, ok := errors.AsType[*core.LostError](context.Cause(s.Context())); !ok || lost.Reason != core.ReasonMaxHold {
			b.Error(context.Cause(s.Context()))
		}
		b.is(s.Release(b.Context()), core.ErrLost)
	})
}

func TestASetOfWhichOneIsReleasedIsReleased(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		s := b.set(b.locks.AcquireAll(b.Context(), []string{"a", "b"}))
		b.ok(s.Lease("a").Release(b.Context()))
		b.is(s.Err(), core.ErrReleased)
		b.ok(s.Release(b.Context()))
	})
}

func TestTheNameWithTheLeastTimeCounts(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(500*time.Millisecond, 0)
		began := time.Now()
		x := b.set(b.locks.AcquireAll(b.Context(), []string{"a", "b", "c"}, core.WithoutRenewal()))
		b.link.Heal()
		if until := began.Add(1500*time.Millisecond + ttl - drift); !x.ValidUntil().Equal(until) {
			b.Errorf("valid until %s, not %s", x.ValidUntil(), until)
		}
		time.Sleep(ttl * 6 / 10)
		b.ok(core.Confirm(x.Context())) // which renews all of them
		if left := time.Until(x.ValidUntil()); left != ttl-drift {
			b.Errorf("%s left", left)
		}
		b.link.All(lab.Refused)
		time.Sleep(ttl * 9 / 10)
		if lost, ok := errors.AsType[*core.LostError](core.Confirm(x.Context())); !ok || lost.Reason != core.ReasonUnreachable {
			b.Errorf("%v", lost)
		}
		b.link.Heal()
		b.ok(x.Release(b.Context()))
	})
}

func TestANameLostWhileOthersAreWaitedForBeginsTheRoundAnew(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		tokens := make(map[string]bool)
		locks, err := core.New(spied{b.store, func(c driver.Claim) {
			if c.Name == "a" {
				tokens[c.Token] = true
			}
		}}, core.WithoutRenewal()) // so that a expires
		b.ok(err)
		held := b.acquire(b.other(), "b")
		time.AfterFunc(28*time.Second, func() { _ = held.Release(context.Background()) })
		b.took(28*time.Second, 2*time.Second, func() {
			x := b.set(locks.AcquireAll(b.Context(), []string{"a", "b"}))
			if left := time.Until(x.ValidUntil()); left < ttl/3 {
				b.Errorf("%s left", left)
			}
			b.ok(x.Release(b.Context()))
		})
		if len(tokens) != 1 { // until the set is whole, each is renewed
			b.Errorf("%d tokens", len(tokens))
		}
		held = b.acquire(b.other(), "b")
		b.took(15*time.Second, 0, func() {
			b.is(second(locks.AcquireAll(b.Context(), []string{"a", "b"}, core.WithWait(15*time.Second))), core.ErrHeld)
		})
		b.ok(held.Release(b.Context()))
		b.ok(locks.Close(b.Context()))
	})
}

// spied is a backend that tells of each claim.
type spied struct {
	*memlock.Store
	see func(driver.Claim)
}

func (s spied) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	s.see(c)
	return s.Store.Acquire(ctx, c)
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
			b.gets(b.locks.AcquireAll(context.WithoutCancel(ctx), []string{"a", "b"}))
		})
	})
}

func TestAnyOfSeveralNamesIsReentered(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.all(b.locks, "a", "b", "c")
		for _, name := range x.Names() {
			y := b.lease(b.locks.TryAcquire(x.Context(), name))
			if y.Fence() != x.Lease(name).Fence() {
				b.Errorf("%q: fence %d", name, y.Fence())
			}
			b.ok(y.Release(b.Context()))
		}
		inner := b.set(b.locks.AcquireAll(x.Context(), []string{"c", "b"}))
		sibling := make(chan error, 1)
		go func() { // siblings exclude each other, and queue
			y, err := b.locks.AcquireAll(x.Context(), []string{"b", "c"})
			if err == nil {
				err = y.Release(b.Context())
			}
			sibling <- err
		}()
		synctest.Wait()
		select {
		case err := <-sibling:
			b.Errorf("beside its sibling: %v", err)
		default:
		}
		b.ok(inner.Release(b.Context()))
		b.ok(<-sibling)
		if n := b.link.Calls(lab.OpAcquire) + b.link.Calls(lab.OpRelease); n != 3 {
			b.Errorf("%d commands", n)
		}
		b.ok(x.Err())
		b.ok(x.Release(b.Context()))
	})
}

func TestAReentryThatIsNearlyOverIsNotTakenAnewForEver(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "b", core.WithoutRenewal())
		time.Sleep(ttl * 7 / 10)
		sent := b.commands()
		y := b.set(b.locks.AcquireAll(x.Context(), []string{"a", "b"}))
		if n := b.commands() - sent; n != 1 {
			b.Errorf("%d commands", n)
		}
		b.ok(y.Release(b.Context()))
		b.ok(x.Release(b.Context()))
	})
}

func TestTheLossOfALeaseAroundEndsTheWaitForSeveralNames(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "b", core.WithoutRenewal())
		theirs := b.acquire(b.other(), "c")
		b.took(ttl-drift, 0, func() {
			b.is(second(b.locks.AcquireAll(x.Context(), []string{"c", "d"})), context.Canceled, core.ErrHeld)
		})
		b.ok(theirs.Release(b.Context()))
	})
}

func TestTheEndOfTheCallerLeavesNoNameBehind(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		held := b.acquire(b.other(), "b")
		ctx := b.in(3 * time.Second)
		b.took(3*time.Second, 0, func() {
			b.is(second(b.locks.AcquireAll(ctx, []string{"a", "b"}, core.WithMinHold(minHold))), context.DeadlineExceeded, core.ErrHeld)
		})
		b.ok(b.acquire(b.other(), "a").Release(b.Context()))
		b.ok(held.Release(b.Context()))
	})
}

func TestCompletedWorkOnSeveralNamesIsDoneForThoseInTheirOrder(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		dedup := core.WithDedup(time.Hour)
		x := b.set(b.locks.AcquireAll(b.Context(), []string{"a", "b"}, dedup))
		b.ok(x.Finish(b.Context(), nil))
		b.is(second(b.locks.AcquireAll(b.Context(), []string{"a", "b"}, dedup)), core.ErrDuplicate)
		for _, names := range [][]string{{"b", "a"}, {"0", "b"}, {"a", "c"}} {
			b.gets(b.locks.AcquireAll(b.Context(), names, dedup))
		}
		y := b.all(b.locks, "a", "b")
		b.is(y.Complete(b.Context()), core.ErrInvalid)
		b.ok(b.all(b.locks, "a", "b").Release(b.Context()))
	})
}
