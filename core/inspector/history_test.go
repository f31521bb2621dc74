package inspector_test

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/memlock"
)

type past struct {
	Tenures []struct {
		From, To          int64
		Label, Fence, End string
	}
	Waits []struct {
		From, To int64
		End      string
	}
}

// pastOf is what the page tells of a name's past.
func pastOf(t *testing.T, page *inspector.Handler, name string) (p past) {
	t.Helper()
	_, text := get(page, "/history?name="+name)
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// large is a lock service with so many keys that a walk takes long.
type large struct{ *memlock.Store }

func (l large) Leases(ctx context.Context, prefix string) iter.Seq2[driver.LeaseInfo, error] {
	time.Sleep(3 * time.Second)
	return l.Store.Leases(ctx, prefix)
}

func TestALongWalkDoesNotEndWhatItHasNotMetYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := large{memlock.New()}
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
		if p := pastOf(t, page, "order:42"); len(p.Tenures) != 1 || len(p.Waits) != 1 {
			t.Errorf("one holder and one waiter all the time: %+v", p)
		}
	})
}

func TestPagesThatShareARecorderDoNotEndWhatTheOtherOneSees(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := inspector.NewRecorder()
		store := memlock.New()
		locks, other := newLocker(t, store, core.WithObserver(seen.Observer())), newLocker(t, store)
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
			if p := pastOf(t, page, name); len(p.Tenures) != 1 {
				t.Errorf("%s was held all the time: %+v", name, p)
			}
		}
	})
}
