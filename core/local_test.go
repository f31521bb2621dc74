package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func TestAProcessKnowsItsOwnLeasesAndWaiters(t *testing.T) {
	t.Parallel()
	onStore(t, func(b *bench) {
		me, tmpl := core.WithLabel("me"), core.WithTemplate("a:{id}")
		x := b.acquire(b.locks, "a:1", me, tmpl)
		r1, r2 := b.acquire(b.locks, "b", core.WithShared(), me), b.acquire(b.locks, "b", core.WithShared(), me)
		p := b.acquire(b.locks, "c", core.WithLimit(2), me)
		b.store.SetDown(true)
		d := b.acquire(b.locks, "d", core.OnUnavailable(core.LocalOnly), me)
		b.store.SetDown(false)
		var wg sync.WaitGroup
		ctx, leave := context.WithCancel(b.Context())
		for i := range 2 {
			wg.Go(func() { _, _ = b.locks.Acquire(ctx, "a:1", core.WithLabel(fmt.Sprint("waiter ", i))) })
			time.Sleep(time.Second)
		}
		all := b.locks.Own("")
		if len(all) != 4 {
			b.Fatalf("%+v", all)
		}
		own := all[0].Process
		if all[0].Name != "a:1" || len(own.Leases) != 1 || len(own.Waiters) != 2 {
			b.Fatalf("%+v", all[0])
		}
		want := core.OwnLease{Label: "me", Template: "a:{id}", Kind: core.HoldExclusive, Fence: x.Fence(), HeldFor: 2 * time.Second, Remaining: own.Leases[0].Remaining}
		if own.Leases[0] != want || own.Leases[0].Remaining <= 0 {
			b.Errorf("%+v, not %+v", own.Leases[0], want)
		}
		for i, w := range own.Waiters {
			if w != (core.OwnWaiter{Label: fmt.Sprint("waiter ", i), Waited: time.Duration(2-i) * time.Second}) {
				b.Errorf("waiter %d: %+v", i, w)
			}
		}
		for i, kind := range []core.HoldKind{core.HoldExclusive, core.HoldShared, core.HoldLimited, core.HoldDegraded} {
			if got := all[i].Process.Leases[0].Kind; got != kind {
				b.Errorf("%s: %q, not %q", all[i].Name, got, kind)
			}
		}
		if n := len(all[1].Process.Leases); n != 2 {
			b.Errorf("%d readers", n)
		}
		if some := b.locks.Own("a:"); len(some) != 1 {
			b.Errorf("%+v", some)
		}

		// The backend's view has them, too, and this process alone knows of the degraded lease.
		info, err := b.locks.Inspect(b.Context(), "a:1")
		b.ok(err)
		if len(info.Process.Leases) != 1 || len(info.Process.Waiters) != 2 {
			b.Errorf("%+v", info)
		}
		kinds := make(map[string]core.HoldKind)
		for info, err := range b.locks.Leases(b.Context(), "") {
			b.ok(err)
			if kinds[info.Name] != "" || !info.Held {
				b.Errorf("%+v", info)
			}
			kinds[info.Name] = info.Kind
		}
		if fmt.Sprint(kinds) != "map[a:1:exclusive b:shared c:limited d:degraded]" {
			b.Errorf("%v", kinds)
		}
		leave()
		wg.Wait()
		for _, x := range []*core.Lease{x, r1, r2, p, d} {
			b.ok(x.Release(b.Context()))
		}
		if left := b.locks.Own(""); len(left) > 0 {
			b.Errorf("left: %+v", left)
		}
	})
}

func TestMarkersAreListedAndRemoved(t *testing.T) {
	t.Parallel()
	onStore(t, func(b *bench) {
		work := func(context.Context) error { return nil }
		do := func() error {
			return b.locks.Do(b.Context(), "order:1", work, core.WithDedup(time.Hour), core.WithDedupScope("pay"), core.WithLabel("me"))
		}
		b.ok(do())
		b.is(do(), core.ErrDuplicate)
		time.Sleep(time.Minute)
		var all []core.MarkerInfo
		for m, err := range b.locks.Markers(b.Context(), "order:") {
			b.ok(err)
			all = append(all, m)
		}
		if len(all) != 1 || all[0] != (core.MarkerInfo{Name: "order:1", Scope: "pay", Label: "me", Remaining: 59 * time.Minute}) {
			b.Errorf("%+v", all)
		}
		for m, err := range b.locks.Markers(b.Context(), "other") {
			b.Errorf("another name: %+v, %v", m, err)
		}
		for _, want := range []bool{true, false} {
			if removed, err := b.locks.RemoveMarker(b.Context(), "order:1", "pay"); removed != want || err != nil {
				b.Errorf("removed %t, %v", removed, err)
			}
		}
		b.ok(do())
		b.store.SetDown(true)
		if _, err := b.locks.RemoveMarker(b.Context(), "order:1", "pay"); !errors.Is(err, core.ErrUnavailable) {
			b.Errorf("%v", err)
		}
		for _, err := range b.locks.Markers(b.Context(), "") {
			b.is(err, core.ErrUnavailable)
		}
		_, err := b.locks.RemoveMarker(b.Context(), "order:1", "a\nb")
		b.is(err, core.ErrInvalid)
	})
}

// onStore is virtual with a Locker that reaches the store without a link, and so can inspect it.
func onStore(t *testing.T, f func(b *bench)) {
	t.Helper()
	virtual(t, func(b *bench) {
		locks, err := core.New(b.store)
		b.ok(err)
		b.locks = locks
		f(b)
		b.ok(locks.Close(context.Background()))
	})
}
