package core_test

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
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// watched is a lock service in virtual time, and processes on it.
func watched(t *testing.T, f func(b *bench, process func(opts ...core.NewOption) *core.Locker)) {
	t.Helper()
	virtual(t, func(b *bench) {
		f(b, func(opts ...core.NewOption) *core.Locker {
			locks, err := core.New(b.store, opts...)
			b.ok(err)
			b.Cleanup(func() { // the test may have left leases
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				_ = locks.Close(ctx)
			})
			return locks
		})
	})
}

func TestInspectTellsWhoHoldsANameAndWhoStandsInLine(t *testing.T) {
	t.Parallel()
	watched(t, func(b *bench, process func(...core.NewOption) *core.Locker) {
		x := b.acquire(process(core.WithLabel("host-1")), "name")
		for range 2 {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			other := process(core.WithLabel("host-2"))
			go func() { _, _ = other.Acquire(ctx, "name") }()
			time.Sleep(time.Second / 2)
		}
		got, err := process().Inspect(b.Context(), "name")
		b.ok(err)
		want := fmt.Sprint(core.LeaseInfo{
			Name: "name", Held: true, Label: "host-1", Fence: x.Fence(), Handle: got.Handle, Remaining: ttl - time.Second,
			Kind: core.HoldExclusive, HeldFor: time.Second,
			Line: []core.WaiterInfo{{Label: "host-2", Waited: time.Second, Alive: true}, {Label: "host-2", Waited: time.Second / 2, Alive: true}},
		})
		if fmt.Sprint(got) != want {
			b.Errorf("%v\nnot %s", got, want)
		}
		free, err := process().Inspect(b.Context(), "other")
		b.ok(err)
		if fmt.Sprint(free) != fmt.Sprint(core.LeaseInfo{Name: "other"}) {
			b.Errorf("%v", free)
		}
		b.ok(x.Release(b.Context()))
	})
}

func TestInspectTellsEachOfThoseWhoShareANameAndWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	watched(t, func(b *bench, process func(...core.NewOption) *core.Locker) {
		one := b.acquire(process(core.WithLabel("host-1")), "name", core.WithShared())
		time.Sleep(2 * ttl)
		two := b.acquire(process(core.WithLabel("host-2")), "name", core.WithShared())
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		other := process(core.WithLabel("host-3"))
		go func() { _, _ = other.Acquire(ctx, "name", core.WithMinHold(time.Second)) }() // offers nothing
		time.Sleep(ttl)
		info, err := process().Inspect(b.Context(), "name")
		b.ok(err)
		since := make(map[string]time.Duration)
		for _, h := range info.Holders {
			since[h.Label] = h.HeldFor
		}
		if len(info.Holders) != 2 || since["host-1"] != 3*ttl || since["host-2"] != ttl || info.HeldFor != 3*ttl {
			b.Errorf("%+v", info)
		}
		if len(info.Line) != 1 || info.Line[0].Label != "host-3" || info.Line[0].Waited != ttl || !info.Line[0].Alive {
			b.Errorf("%+v", info.Line)
		}
		b.ok(one.Release(b.Context()))
		b.ok(two.Release(b.Context()))
	})
}

// All turns of a tenure have one handle. They are over a few milliseconds after the grant, whatever is renewed: so an
// operator who has looked takes the name from whom it was shown for, or from nobody.
func TestAForceReleaseNeverHitsALaterTurn(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		opts  []core.Option
		known func(b *bench, x *core.Lease)
		turns bool
	}{
		"fresh": {known: func(*bench, *core.Lease) {}, turns: true},
		"renewed": {known: func(b *bench, x *core.Lease) {
			until := x.ValidUntil()
			b.eventually("a renewal", func() bool { return x.ValidUntil().After(until) })
		}},
		"confirmed": {opts: []core.Option{core.WithoutRenewal()}, known: func(b *bench, x *core.Lease) {
			time.Sleep(ttl * 6 / 10)
			b.ok(core.Confirm(x.Context()))
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			watched(t, func(b *bench, process func(...core.NewOption) *core.Locker) {
				locks, operator := process(), process()
				holder := b.acquire(process(), "name")
				first, second := b.call(locks, row.opts...), b.call(locks, row.opts...)
				time.Sleep(driver.Recheck(ttl)) // the next offer has fences for those behind
				b.ok(holder.Release(b.Context()))
				x := first.granted()
				time.Sleep(time.Nanosecond)
				synctest.Wait() // the grant is proved
				row.known(b, x)
				handle := b.handles(operator)[0]
				y := turnAfter(x, second)
				if turn := y.Fence() == x.Fence()+1; turn != row.turns {
					b.Errorf("fence %d after %d", y.Fence(), x.Fence())
				}
				freed, err := operator.ForceRelease(b.Context(), "name", handle)
				if _, held := errors.AsType[*core.HeldError](err); freed != row.turns || held == row.turns {
					b.Errorf("%v, %v: the handle of an earlier holder", freed, err)
				}
				b.taken(y, row.turns)
			})
		})
	}
}

func TestLeasesAreListedByPrefix(t *testing.T) {
	t.Parallel()
	watched(t, func(b *bench, process func(...core.NewOption) *core.Locker) {
		locks := process()
		for _, name := range []string{"order:1", "order:2", "report:1"} {
			b.acquire(locks, name)
		}
		for prefix, want := range map[string]int{"": 3, "order:": 2, "order:1": 1, "nothing": 0} {
			n := 0
			for info, err := range locks.Leases(b.Context(), prefix) {
				b.ok(err)
				if !info.Held || info.Handle == "" {
					b.Errorf("%v", info)
				}
				n++
			}
			if n != want {
				b.Errorf("%d leases with %q, not %d", n, prefix, want)
			}
		}
		for _, err := range locks.Leases(b.Context(), "") {
			b.ok(err)
			break // a caller may have seen enough
		}
	})
}

func TestAForceReleaseFreesTheLeaseOfThatHandleAndNoOther(t *testing.T) {
	t.Parallel()
	watched(t, func(b *bench, process func(...core.NewOption) *core.Locker) {
		operator := process()
		x := b.acquire(process(core.WithLabel("host-1")), "name")
		next := make(chan *core.Lease, 1)
		waiting := process()
		go func() {
			y, err := waiting.Acquire(b.Context(), "name")
			b.ok(err)
			next <- y
		}()
		synctest.Wait()
		handle := b.handles(operator)[0]
		freed, err := operator.ForceRelease(b.Context(), "name", "0123456789abcdef")
		if held, ok := errors.AsType[*core.HeldError](err); freed || !ok || held.Label != "host-1" || held.Name != "name" {
			b.Errorf("%v, %v", freed, err)
		}
		b.ok(x.Check(b.Context()))
		var y *core.Lease
		b.took(0, 0, func() { // the next in line is told
			if freed, err := operator.ForceRelease(b.Context(), "name", handle); !freed || err != nil {
				b.Errorf("%v, %v", freed, err)
			}
			y = <-next
		})
		b.ok(x.Err()) // nobody has told it yet
		b.took(0, period, func() { <-x.Context().Done() })
		b.reason(x, core.ReasonTaken)
		b.ok(y.Err())
		b.ok(y.Release(b.Context()))
		if freed, err := operator.ForceRelease(b.Context(), "name", handle); freed || err != nil {
			b.Errorf("of a free name: %v, %v", freed, err)
		}
	})
}

func TestWhatCannotBeInspectedIsRefused(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) { // a Link cannot tell
		_, err := b.locks.Inspect(b.Context(), "name")
		b.is(err, core.ErrInvalid)
		_, err = b.locks.ForceRelease(b.Context(), "name", "handle")
		b.is(err, core.ErrInvalid)
		b.is(firstError(b.locks.Leases(b.Context(), "")), core.ErrInvalid)
	})
	watched(t, func(b *bench, process func(...core.NewOption) *core.Locker) {
		locks := process()
		_, err := locks.Inspect(b.Context(), "a name")
		b.is(err, core.ErrInvalid)
		_, err = locks.ForceRelease(b.Context(), "a name", "handle")
		b.is(err, core.ErrInvalid)
		_, err = locks.ForceRelease(b.Context(), "name", "")
		b.is(err, core.ErrInvalid)
		var none *core.Locker
		b.is(firstError(none.Leases(b.Context(), "")), core.ErrInvalid)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		_, err = locks.Inspect(ctx, "name")
		b.is(err, context.Canceled, core.ErrUnavailable)
		_, err = locks.ForceRelease(ctx, "name", "handle")
		b.is(err, context.Canceled, core.ErrUnavailable)
		b.is(firstError(locks.Leases(ctx, "")), context.Canceled, core.ErrUnavailable)
	})
}

func firstError(list iter.Seq2[core.LeaseInfo, error]) error {
	for _, err := range list {
		return err
	}
	return nil
}

func TestAnErrorEndsTheList(t *testing.T) {
	t.Parallel()
	locks, err := core.New(unreachable{memlock.New()})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range locks.Leases(t.Context(), "") {
		if n++; !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, drivertest.ErrReset) {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d steps", n)
	}
}

// unreachable fails all the time, and does not stop.
type unreachable struct{ *memlock.Store }

func (unreachable) Leases(context.Context, string) iter.Seq2[driver.LeaseInfo, error] {
	return func(yield func(driver.LeaseInfo, error) bool) {
		for yield(driver.LeaseInfo{}, drivertest.ErrReset) {
		}
	}
}
