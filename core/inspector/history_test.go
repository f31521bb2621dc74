package inspector_test

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memlock"
)

type hold struct {
	From, To          int64
	Label, Fence, End string
}

type past struct {
	Holds []hold
	Waits []struct {
		From, To int64
		End      string
	}
}

// pastOf is what the page tells of a name's past.
func pastOf(t *testing.T, page *inspector.Handler, name string) (p past) {
	t.Helper()
	_, text := get(page, "/history?name="+name)
	backendtest.OK(t, json.Unmarshal([]byte(text), &p))
	return p
}

func TestProcessesThatTakeTurnsAreToldApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := inspector.NewRecorder()
		store := memlock.New()
		own := newLocker(t, store, core.WithObserver(seen.Observe))
		other := newLocker(t, store)
		page := inspector.New(own, inspector.WithRecorder(seen))
		defer page.Close()
		b := watch(t, page, "")
		defer b.leave()
		want := []string{"other", "own", "other", "own", "other"}
		for _, who := range want {
			locks := map[string]*core.Locker{"own": own, "other": other}[who]
			if err := locks.Do(t.Context(), "order:42", func(context.Context) error {
				time.Sleep(5500 * time.Millisecond)
				return nil
			}, core.WithLabel(who)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		holds := pastOf(t, page, "order:42").Holds
		slices.SortFunc(holds, func(a, b hold) int { return cmp.Compare(a.From, b.From) })
		var told []string
		for _, x := range holds {
			told = append(told, x.Label)
		}
		if !slices.Equal(told, want) {
			t.Errorf("%q have held it, not %q", told, want)
		}
	})
}

func TestALongWalkDoesNotEndWhatItHasNotMetYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &disturbed{Store: memlock.New(), before: slowly(3 * time.Second)} // it has many keys
		locks, other := newLocker(t, store), newLocker(t, store)
		acquire(t, locks, "order:42")
		var waiting sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		waiting.Go(func() { _, _ = other.Acquire(ctx, "order:42") })
		defer waiting.Wait()
		defer cancel()
		page := inspector.New(locks)
		defer page.Close()
		for range 3 { // somebody comes and goes
			b := watch(t, page, "")
			time.Sleep(10 * time.Second)
			b.leave()
		}
		if p := pastOf(t, page, "order:42"); len(p.Holds) != 1 || len(p.Waits) != 1 {
			t.Errorf("one holder and one waiter all the time: %+v", p)
		}
	})
}

func TestPagesThatShareARecorderDoNotEndWhatTheOtherOneSees(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := inspector.NewRecorder()
		store := memlock.New()
		locks, other := newLocker(t, store, core.WithObserver(seen.Observe)), newLocker(t, store)
		pages := map[string]*inspector.Handler{}
		for _, prefix := range []string{"order:", "report:"} {
			page := inspector.New(locks, inspector.WithRecorder(seen), inspector.WithPrefix(prefix))
			defer page.Close()
			pages[prefix+"1"] = page
			acquire(t, other, prefix+"1")
			b := watch(t, page, "")
			defer b.leave()
		}
		time.Sleep(20 * time.Second)
		for name, page := range pages {
			if p := pastOf(t, page, name); len(p.Holds) != 1 {
				t.Errorf("%s was held all the time: %+v", name, p)
			}
		}
	})
}

func TestAWaiterOfUnknownAgeIsOneWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &disturbed{Store: memlock.New(), change: func(info *inspect.LeaseInfo) {
			for i := range info.Line {
				info.Line[i].Waited = 0
			}
		}}
		holder, waiter := newLocker(t, store), newLocker(t, store)
		acquire(t, holder, "order:42")
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() { _, _ = waiter.Acquire(ctx, "order:42") })
		defer waiting.Wait()
		defer cancel()
		page := inspector.New(holder)
		defer page.Close()
		b := watch(t, page, "")
		time.Sleep(20*time.Second + time.Millisecond)
		b.leave()
		if w := pastOf(t, page, "order:42").Waits; len(w) != 1 || w[0].To-w[0].From < 15_000 {
			t.Errorf("one has waited for 20 s: %+v", w)
		}
	})
}

func TestTheTimeLeftIsOfWhatTheHolderHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := newLocker(t, memlock.New())
		page := inspector.New(locks)
		defer page.Close()
		b := watch(t, page, "")
		defer b.leave()
		var v struct {
			Names []struct{ TTL, Full int64 }
		}
		for _, ttl := range []time.Duration{time.Hour, 10 * time.Second} {
			x := acquire(t, locks, "report", core.WithTTL(ttl))
			time.Sleep(5 * time.Second)
			for len(b.data) > 0 {
				backendtest.OK(t, json.Unmarshal([]byte(<-b.data), &v))
			}
			if n := v.Names; len(n) != 1 || n[0].Full > ttl.Milliseconds() || n[0].Full < n[0].TTL {
				t.Errorf("of a TTL of %s: %+v", ttl, n)
			}
			backendtest.OK(t, x.Release(t.Context()))
		}
	})
}

func TestWhoComesLaterIsNotShownWhatWasHeldThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := newLocker(t, memlock.New())
		x := acquire(t, locks, "order:42")
		page := inspector.New(locks)
		defer page.Close()
		b := watch(t, page, "")
		if v := b.next(); len(v.Names) != 1 {
			t.Errorf("%+v", v)
		}
		b.leave()
		backendtest.OK(t, x.Release(t.Context()))
		time.Sleep(time.Hour)
		b = watch(t, page, "")
		if v := b.next(); len(v.Names) != 0 {
			t.Errorf("released an hour ago: %+v", v)
		}
		b.leave()
	})
}
