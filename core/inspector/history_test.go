package inspector_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestProcessesThatTakeTurnsAreToldApart(t *testing.T) {
	t.Parallel()
	recorded(t, func(b *bench, seen *inspector.Recorder) {
		other := b.locker()
		page := b.open(inspector.WithRecorder(seen))
		b.watch(page, "")
		want := []string{"other", "own", "other", "own", "other"}
		for _, who := range want {
			locks := map[string]*core.Locker{"own": b.locks, "other": other}[who]
			backendtest.OK(b, locks.Do(b.Context(), "order:42", slowly(5500*time.Millisecond), core.WithLabel(who)))
		}
		time.Sleep(2 * time.Second)
		holds := b.past(page, "order:42").Holds
		slices.SortFunc(holds, func(a, b hold) int { return cmp.Compare(a.From, b.From) })
		var told []string
		for _, x := range holds {
			told = append(told, x.Label)
		}
		if !slices.Equal(told, want) {
			b.Errorf("%q have held it, not %q", told, want)
		}
	})
}

func TestALongWalkDoesNotEndWhatItHasNotMetYet(t *testing.T) {
	t.Parallel()
	virtual(t, &disturbed{before: slowly(3 * time.Second)}, func(b *bench) { // it has many keys
		b.acquire(b.locks, "order:42")
		b.waits("order:42")
		for range 3 { // somebody comes and goes
			w := b.watch(b.page, "")
			time.Sleep(10 * time.Second)
			w.leave()
		}
		if p := b.past(b.page, "order:42"); len(p.Holds) != 1 || len(p.Waits) != 1 {
			b.Errorf("one holder and one waiter all the time: %+v", p)
		}
	})
}

func TestPagesThatShareARecorderDoNotEndWhatTheOtherOneSees(t *testing.T) {
	t.Parallel()
	recorded(t, func(b *bench, seen *inspector.Recorder) {
		other := b.locker()
		pages := map[string]*inspector.Handler{}
		for _, prefix := range []string{"order:", "report:"} {
			page := b.open(inspector.WithRecorder(seen), inspector.WithPrefix(prefix))
			pages[prefix+"1"] = page
			b.acquire(other, prefix+"1")
			b.watch(page, "")
		}
		time.Sleep(20 * time.Second)
		for name, page := range pages {
			if p := b.past(page, name); len(p.Holds) != 1 {
				b.Errorf("%s was held all the time: %+v", name, p)
			}
		}
	})
}

func TestAWaiterOfUnknownAgeIsOneWait(t *testing.T) {
	t.Parallel()
	virtual(t, &disturbed{change: func(info *inspect.LeaseInfo) {
		for i := range info.Line {
			info.Line[i].Waited = 0
		}
	}}, func(b *bench) {
		b.acquire(b.locks, "order:42")
		b.waits("order:42")
		w := b.watch(b.page, "")
		time.Sleep(20*time.Second + time.Millisecond)
		w.leave()
		if w := b.past(b.page, "order:42").Waits; len(w) != 1 || w[0].To-w[0].From < 15_000 {
			b.Errorf("one has waited for 20 s: %+v", w)
		}
	})
}

func TestTheTimeLeftIsOfWhatTheHolderHas(t *testing.T) {
	t.Parallel()
	virtual(t, &disturbed{}, func(b *bench) {
		w := b.watch(b.page, "")
		for _, ttl := range []time.Duration{time.Hour, 10 * time.Second} {
			x := b.acquire(b.locks, "report", core.WithTTL(ttl))
			time.Sleep(5 * time.Second)
			var v view
			for len(w.data) > 0 {
				v = w.next()
			}
			if n := v.Names; len(n) != 1 || n[0].Full > ttl.Milliseconds() || n[0].Full < n[0].TTL {
				b.Errorf("of a TTL of %s: %+v", ttl, n)
			}
			backendtest.OK(b, x.Release(b.Context()))
		}
	})
}

func TestWhoComesLaterIsNotShownWhatWasHeldThen(t *testing.T) {
	t.Parallel()
	virtual(t, &disturbed{}, func(b *bench) {
		x := b.acquire(b.locks, "order:42")
		if v := b.glance(b.page, ""); len(v.Names) != 1 {
			b.Errorf("%+v", v)
		}
		backendtest.OK(b, x.Release(b.Context()))
		time.Sleep(time.Hour)
		if v := b.glance(b.page, ""); len(v.Names) != 0 {
			b.Errorf("released an hour ago: %+v", v)
		}
	})
}
