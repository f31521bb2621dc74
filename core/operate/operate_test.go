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
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/operate"
)

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
				backendtest.OK(b, err)
				if !info.Held || info.Handle == "" || len(info.Process.Leases) != 1 {
					b.Errorf("%v", info)
				}
				n++
			}
			if n != want {
				b.Errorf("%d leases with %q, not %d", n, prefix, want)
			}
		}
		for range b.operator.Leases(b.Context(), "") { //nolint:errcheck // none is looked at
			break // a caller may have seen enough
		}
	})
}

func TestWhatThisProcessKnowsIsAddedAndOnlyItKnowsOfADegradedLease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		locks := b.process()
		b.acquire(locks, "a")
		backendtest.Next(b, locks, "a")
		b.acquire(locks, "lost")
		b.store.Lose("lost")
		b.store.SetDown(true)
		for _, name := range []string{"d", "d2", "theirs"} {
			b.acquire(locks, name, core.OnUnavailable(core.LocalOnly), core.WithLabel("me"))
		}
		b.store.SetDown(false)
		synctest.Wait()
		b.acquire(b.process(), "theirs") // as others see it
		o := operate.New(locks)
		info, err := o.Inspect(b.Context(), "a")
		backendtest.OK(b, err)
		if len(info.Process.Leases) != 1 || len(info.Process.Waiters) != 1 {
			b.Errorf("%+v", info)
		}
		if info, err = o.Inspect(b.Context(), "lost"); err != nil || info.Held {
			b.Errorf("%+v, %v", info, err)
		}
		time.Sleep(time.Second)
		info, err = o.Inspect(b.Context(), "d")
		backendtest.OK(b, err)
		if !info.Held || info.Kind != inspect.HoldDegraded || info.Label != "me" || info.HeldFor != time.Second {
			b.Errorf("%+v", info)
		}
		kinds := make(map[string]inspect.HoldKind)
		for info, err := range o.Leases(b.Context(), "") {
			backendtest.OK(b, err)
			if kinds[info.Name] != "" || !info.Held {
				b.Errorf("%+v", info)
			}
			kinds[info.Name] = info.Kind
		}
		if fmt.Sprint(kinds) != "map[a:exclusive d:degraded d2:degraded theirs:exclusive]" {
			b.Errorf("%v", kinds)
		}
		for range o.Leases(b.Context(), "d") { //nolint:errcheck // none is looked at
			break // a caller may have seen enough
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
		four := operate.New(b.on(short{b.store}))
		b.is(second(four.Inspect(b.Context(), "names")), core.ErrInvalid)
		backendtest.OK(b, second(four.Inspect(b.Context(), "name")))
		b.is(second(b.operator.ForceRelease(b.Context(), "name", "")), core.ErrInvalid)
		b.is(second(b.operator.RemoveMarker(b.Context(), "name", "a\nb")), core.ErrInvalid)
	})
}

// short takes names of four bytes.
type short struct{ *memlock.Store }

func (s short) Capabilities() driver.Capabilities {
	can := s.Store.Capabilities()
	can.MaxName = 4
	return can
}

func TestAnEndedContextIsTheCallers(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		b.is(second(b.operator.Inspect(ctx, "name")), context.Canceled, core.ErrUnavailable)
		b.is(second(b.operator.ForceRelease(ctx, "name", "handle")), context.Canceled, core.ErrUnavailable)
		b.is(firstError(b.operator.Leases(ctx, "")), context.Canceled, core.ErrUnavailable)
	})
}

func firstError[T any](list iter.Seq2[T, error]) error {
	for _, err := range list {
		return err
	}
	return nil
}

// A deadline of the client's own is nobody's that has passed.
func TestAnErrorEndsTheListAndIsThatOfTheService(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for _, cause := range []error{errors.New("connection reset"), context.DeadlineExceeded, context.Canceled} {
			n := 0
			for _, err := range operate.New(b.on(failing{b.store, cause})).Leases(b.Context(), "") {
				n++
				b.is(err, core.ErrUnavailable)
				if errors.Is(err, cause) != (cause.Error() == "connection reset") || core.KindOf(err) != core.KindUnavailable {
					b.Errorf("%v of %v", err, cause)
				}
			}
			if n != 1 {
				b.Errorf("%d steps", n)
			}
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
		backendtest.OK(b, do())
		b.is(do(), core.ErrDuplicate)
		time.Sleep(time.Minute)
		var all []inspect.MarkerInfo
		for m, err := range o.Markers(b.Context(), "order:") {
			backendtest.OK(b, err)
			all = append(all, m)
		}
		if len(all) != 1 || all[0] != (inspect.MarkerInfo{Name: "order:1", Scope: "pay", Label: "me", Remaining: 59 * time.Minute}) {
			b.Errorf("%+v", all)
		}
		for m, err := range o.Markers(b.Context(), "other") {
			b.Errorf("another name: %+v, %v", m, err)
		}
		backendtest.OK(b, locks.Do(b.Context(), "report", func(context.Context) error { return nil }, core.WithDedup(time.Hour)))
		n := 0
		for _, err := range o.Markers(b.Context(), "") {
			backendtest.OK(b, err)
			n++
		}
		for range o.Markers(b.Context(), "") { //nolint:errcheck // none is looked at
			break // a caller may have seen enough
		}
		if n != 2 {
			b.Errorf("%d markers", n)
		}
		for _, want := range []bool{true, false} {
			if removed, err := o.RemoveMarker(b.Context(), "order:1", "pay"); removed != want || err != nil {
				b.Errorf("removed %t, %v", removed, err)
			}
		}
		backendtest.OK(b, do())
		b.store.SetDown(true)
		removed, err := o.RemoveMarker(b.Context(), "order:1", "pay")
		if b.is(err, core.ErrUnavailable); removed {
			b.Error("nobody knows")
		}
		b.is(firstError(o.Markers(b.Context(), "")), core.ErrUnavailable)
	})
}

func second[T any](_ T, err error) error { return err }
