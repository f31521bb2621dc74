package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/fallback"
)

func TestAProcessKnowsItsOwnLeasesAndWaiters(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		locks := b.locker(fallback.New(b.store))
		me := core.WithLabel("me")
		x := b.acquire(locks, "a:1", me, core.WithTemplate("a:{id}"))
		leases := []*core.Lease{
			x, b.acquire(locks, "b", core.WithShared(), me, core.WithTTL(2*ttl)), // due later than the younger one
			b.acquire(locks, "c", core.WithLimit(1_000_000), me), // the most
		}
		b.store.SetDown(true)
		leases = append(leases, b.acquire(locks, "d", core.OnUnavailable(core.LocalOnly), me))
		b.store.SetDown(false)
		leases = append(leases, b.acquire(locks, "e", core.WithLimit(1), me))
		ctx, leave := context.WithCancel(b.Context())
		for i, kind := range []core.Option{core.WithLimit(1), core.WithShared()} { // in two lines
			go func() { _, _ = locks.Acquire(ctx, "a:1", core.WithLabel(fmt.Sprint("waiter ", i)), kind) }()
			time.Sleep(time.Second)
		}
		leases = append(leases, b.acquire(locks, "b", core.WithShared(), me))
		if locks.Driver() == nil {
			b.Error("no driver")
		}
		all := locks.Own("")
		if len(all) != 5 {
			b.Fatalf("%+v", all)
		}
		own := all[0].Process
		if all[0].Name != "a:1" || len(own.Leases) != 1 || len(own.Waiters) != 2 {
			b.Fatalf("%+v", all[0])
		}
		want := inspect.OwnLease{
			Label: "me", Template: "a:{id}", Kind: inspect.HoldExclusive, Fence: x.Fence(), HeldFor: 2 * time.Second,
			Remaining: own.Leases[0].Remaining,
		}
		if own.Leases[0] != want || want.Remaining <= 0 {
			b.Errorf("%+v, not %+v", own.Leases[0], want)
		}
		for i, w := range own.Waiters {
			if w != (inspect.OwnWaiter{Label: fmt.Sprint("waiter ", i), Waited: time.Duration(2-i) * time.Second}) {
				b.Errorf("waiter %d: %+v", i, w)
			}
		}
		for i, kind := range []inspect.HoldKind{inspect.HoldExclusive, inspect.HoldShared, inspect.HoldLimited, inspect.HoldDegraded, inspect.HoldExclusive} {
			if got := all[i].Process.Leases[0].Kind; got != kind {
				b.Errorf("%s: %q, not %q", all[i].Name, got, kind)
			}
			if one := locks.OwnOf(all[i].Name); fmt.Sprint(one) != fmt.Sprint(all[i].Process) {
				b.Errorf("%s: %+v by itself, and %+v among all", all[i].Name, one, all[i].Process)
			}
		}
		if r := all[1].Process.Leases; len(r) != 2 || r[0].HeldFor < r[1].HeldFor {
			b.Errorf("readers: %+v", r)
		}
		if some := locks.Own("a:"); len(some) != 1 {
			b.Errorf("%+v", some)
		}
		leave()
		synctest.Wait()
		for _, x := range leases {
			b.ok(x.Release(b.Context()))
		}
		if left := locks.Own(""); len(left) > 0 {
			b.Errorf("left: %+v", left)
		}
	})
}

// As long as a process shares no names, it finds what it has to do with one without a look at the others.
func TestWhatAProcessKnowsOfOneNameIsTheSameWithoutALookAtTheOthers(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var none *core.Locker
		if own := none.OwnOf("name"); none.Own("") != nil || len(own.Leases) > 0 {
			b.Error(own)
		}
		y := b.lease(b.locks.Attach(b.Context(), b.detach(b.acquire(b.locks, "name"))))
		b.acquire(b.locks, "name:1")
		calls := []*call{b.call(b.locks), b.call(b.locks), b.call(b.locks)}
		same := func(name string, leases, waiters int) {
			b.Helper()
			if own := b.locks.OwnOf(name); len(own.Leases) != leases || len(own.Waiters) != waiters {
				b.Errorf("%s: %+v, not %d leases and %d waiters", name, own, leases, waiters)
			}
		}
		same("name", 1, 3)
		same("name:1", 1, 0)
		same("b", 0, 0)
		for _, c := range calls {
			c.cancel()
		}
		synctest.Wait()
		b.ok(y.Release(b.Context()))
		same("name", 0, 0)
	})
}
