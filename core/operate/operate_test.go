package operate_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/operate"
)

func TestInspectTellsWhoHoldsANameAndWhoStandsInLine(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.process(core.WithLabel("host-1")), "name")
		for range 2 {
			b.waits(b.process(core.WithLabel("host-2")), "name")
			time.Sleep(time.Second / 2)
		}
		got, err := b.operator.Inspect(b.Context(), "name")
		b.ok(err)
		want := fmt.Sprint(inspect.LeaseInfo{
			Name: "name", Held: true, Label: "host-1", Fence: x.Fence(), Handle: got.Handle, Remaining: ttl - time.Second,
			Kind: inspect.HoldExclusive, HeldFor: time.Second,
			Line: []inspect.WaiterInfo{{Label: "host-2", Waited: time.Second, Alive: true}, {Label: "host-2", Waited: time.Second / 2, Alive: true}},
		})
		if fmt.Sprint(got) != want || got.Handle == "" {
			b.Errorf("%v\nnot %s", got, want)
		}
		free, err := b.operator.Inspect(b.Context(), "other")
		b.ok(err)
		if fmt.Sprint(free) != fmt.Sprint(inspect.LeaseInfo{Name: "other"}) {
			b.Errorf("%v", free)
		}
	})
}

func TestLeasesAreListedByPrefix(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		locks := b.process()
		for _, name := range []string{"order:1", "order:2", "report:1"} {
			b.acquire(locks, name)
		}
		for prefix, want := range map[string]int{"": 3, "order:": 2, "order:1": 1, "nothing": 0} {
			n := 0
			for info, err := range operate.New(locks).Leases(b.Context(), prefix) {
				b.ok(err)
				if !info.Held || info.Handle == "" || len(info.Process.Leases) != 1 {
					b.Errorf("%v", info)
				}
				n++
			}
			if n != want {
				b.Errorf("%d leases with %q, not %d", n, prefix, want)
			}
		}
		n := 0
		for _, err := range b.operator.Leases(b.Context(), "") {
			b.ok(err)
			n++
			break // a caller may have seen enough
		}
		if n != 1 {
			b.Error("nothing is held")
		}
	})
}

func TestWhatThisProcessKnowsIsAddedAndOnlyItKnowsOfADegradedLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		locks := b.process()
		b.acquire(locks, "a")
		b.waits(locks, "a")
		b.store.SetDown(true)
		b.acquire(locks, "d", core.OnUnavailable(core.LocalOnly), core.WithLabel("me"))
		b.store.SetDown(false)
		synctest.Wait()
		o := operate.New(locks)
		info, err := o.Inspect(b.Context(), "a")
		b.ok(err)
		if len(info.Process.Leases) != 1 || len(info.Process.Waiters) != 1 {
			b.Errorf("%+v", info)
		}
		time.Sleep(time.Second)
		info, err = o.Inspect(b.Context(), "d")
		b.ok(err)
		if !info.Held || info.Kind != inspect.HoldDegraded || info.Label != "me" || info.HeldFor != time.Second {
			b.Errorf("%+v", info)
		}
		kinds := make(map[string]inspect.HoldKind)
		for info, err := range o.Leases(b.Context(), "") {
			b.ok(err)
			if kinds[info.Name] != "" || !info.Held {
				b.Errorf("%+v", info)
			}
			kinds[info.Name] = info.Kind
		}
		if fmt.Sprint(kinds) != "map[a:exclusive d:degraded]" {
			b.Errorf("%v", kinds)
		}
	})
}

func TestWhatCannotBeInspectedIsRefused(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		blind := operate.New(b.on(struct{ driver.Driver }{b.store}))
		var none *core.Locker
		for _, o := range []operate.Operator{blind, operate.New(none)} {
			b.is(second(o.Inspect(b.Context(), "name")), core.ErrInvalid)
			b.is(second(o.ForceRelease(b.Context(), "name", "handle")), core.ErrInvalid)
			b.is(second(o.RemoveMarker(b.Context(), "name", "")), core.ErrInvalid)
			b.is(firstError(o.Leases(b.Context(), "")), core.ErrInvalid)
			b.is(firstError(o.Markers(b.Context(), "")), core.ErrInvalid)
		}
		for _, name := range []string{"", "a name"} {
			b.is(second(b.operator.Inspect(b.Context(), name)), core.ErrInvalid)
			b.is(second(b.operator.ForceRelease(b.Context(), name, "handle")), core.ErrInvalid)
			b.is(second(b.operator.RemoveMarker(b.Context(), name, "")), core.ErrInvalid)
		}
		b.is(second(b.operator.ForceRelease(b.Context(), "name", "")), core.ErrInvalid)
		b.is(second(b.operator.RemoveMarker(b.Context(), "name", "a\nb")), core.ErrInvalid)
	})
}

func TestAnEndedContextIsTheCallersAndAnyOtherEndIsNot(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		b.is(second(b.operator.Inspect(ctx, "name")), context.Canceled, core.ErrUnavailable)
		b.is(second(b.operator.ForceRelease(ctx, "name", "handle")), context.Canceled, core.ErrUnavailable)
		b.is(firstError(b.operator.Leases(ctx, "")), context.Canceled, core.ErrUnavailable)

		slow := operate.New(b.on(failing{b.store, context.DeadlineExceeded}))
		err := firstError(slow.Leases(b.Context(), ""))
		if b.is(err, core.ErrUnavailable); errors.Is(err, context.DeadlineExceeded) || core.KindOf(err) != core.KindUnavailable {
			b.Errorf("%v: nobody's deadline has passed", err)
		}
	})
}

func firstError[T any](list iter.Seq2[T, error]) error {
	for _, err := range list {
		return err
	}
	return nil
}

func TestAnErrorEndsTheList(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		reset := errors.New("connection reset")
		n := 0
		for _, err := range operate.New(b.on(failing{b.store, reset})).Leases(t.Context(), "") {
			n++
			b.is(err, core.ErrUnavailable, reset)
		}
		if n != 1 {
			b.Errorf("%d steps", n)
		}
	})
}

// failing fails all the time, and does not stop.
type failing struct {
	*memlock.Store
	err error
}

func (f failing) Leases(context.Context, string) iter.Seq2[inspect.LeaseInfo, error] {
	return func(yield func(inspect.LeaseInfo, error) bool) {
		for yield(inspect.LeaseInfo{}, f.err) {
		}
	}
}

func TestMarkersAreListedAndRemoved(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		locks := b.process()
		o := operate.New(locks)
		do := func() error {
			return locks.Do(b.Context(), "order:1", func(context.Context) error { return nil },
				core.WithDedup(time.Hour), core.WithDedupScope("pay"), core.WithLabel("me"))
		}
		b.ok(do())
		b.is(do(), core.ErrDuplicate)
		time.Sleep(time.Minute)
		var all []inspect.MarkerInfo
		for m, err := range o.Markers(b.Context(), "order:") {
			b.ok(err)
			all = append(all, m)
		}
		if len(all) != 1 || all[0] != (inspect.MarkerInfo{Name: "order:1", Scope: "pay", Label: "me", Remaining: 59 * time.Minute}) {
			b.Errorf("%+v", all)
		}
		for m, err := range o.Markers(b.Context(), "other") {
			b.Errorf("another name: %+v, %v", m, err)
		}
		for _, want := range []bool{true, false} {
			if removed, err := o.RemoveMarker(b.Context(), "order:1", "pay"); removed != want || err != nil {
				b.Errorf("removed %t, %v", removed, err)
			}
		}
		b.ok(do())
		b.store.SetDown(true)
		b.is(second(o.RemoveMarker(b.Context(), "order:1", "pay")), core.ErrUnavailable)
		b.is(firstError(o.Markers(b.Context(), "")), core.ErrUnavailable)
	})
}

func second[T any](_ T, err error) error { return err }
