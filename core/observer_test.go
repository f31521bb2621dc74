package core_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// recorder is an observer that writes down what it is told.
type recorder struct {
	mu     sync.Mutex // protects events
	events []string
}

func (r *recorder) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *recorder) take() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Join(r.events, "; ")
	r.events = nil
	return all
}

func (r *recorder) observer() observer {
	return observer{
		Acquired: func(e core.Event) {
			r.add("acquired %s %v reentry=%v fence=%v", e.Template, e.Took, e.Reentry, e.Fence > 0)
		},
		Held:        func(e core.Event) { r.add("held %s %v", e.Template, e.Took) },
		Waited:      func(e core.Event) { r.add("waited %s %v ok=%v", e.Template, e.Took, e.Err == nil) },
		Failed:      func(e core.Event) { r.add("failed %s %v", e.Template, e.Err != nil) },
		Renewed:     func(e core.Event) { r.add("renewed %s ok=%v", e.Template, e.Err == nil) },
		Lost:        func(e core.Event) { r.add("lost %s %s %v", e.Template, e.Reason, e.Held) },
		Released:    func(e core.Event) { r.add("released %s %v marked=%v", e.Template, e.Held, e.Marked) },
		Unconfirmed: func(e core.Event) { r.add("unconfirmed %s", e.Template) },
		Dropped:     func(n int) { r.add("dropped %d", n) },
	}
}

func TestTheObserverIsToldWhatHappens(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	virtual(t, func(b *bench) {
		expect := func(want string) {
			b.Helper()
			if got := r.take(); got != want {
				b.Errorf("told %q, not %q", got, want)
			}
		}
		x := b.acquire(b.locks, "name")
		expect("acquired order 0s reentry=false fence=true")
		inner, err := b.locks.Acquire(x.Context(), "name")
		b.ok(err)
		b.ok(inner.Release(b.Context()))
		expect("acquired order 0s reentry=true fence=true")
		b.taken(b.locks, "name")
		expect("held order 0s")
		b.is(second(b.locks.Acquire(b.Context(), "name", core.WithWait(time.Second))), core.ErrHeld)
		expect("waited order 1s ok=false; held order 1s")
		time.Sleep(3 * time.Second)
		expect("renewed order ok=true")
		b.ok(x.Release(b.Context()))
		expect("released order 4s marked=false")
		b.link.All(lab.Refused)
		b.is(second(b.locks.TryAcquire(b.Context(), "name")), core.ErrUnavailable)
		expect("failed order true")
		b.link.All(lab.Delivered)
		y := b.acquire(b.locks, "name", core.WithoutRenewal(), core.WithDedup(time.Hour))
		<-y.Context().Done()
		expect("acquired order 0s reentry=false fence=true; lost order expired " + (ttl - drift).String())
		time.Sleep(drift)
		b.ok(b.acquire(b.locks, "name", core.WithDedup(time.Hour)).Complete(b.Context()))
		expect("acquired order 0s reentry=false fence=true; released order 0s marked=true")
	}, observing(r.observer()), core.WithTemplate("order"))
}

func TestABlockedObserverDelaysNothingAndLosesOnlyEvents(t *testing.T) {
	t.Parallel()
	release := make(chan bool)
	dropped := 0
	o := observer{
		Acquired: func(core.Event) { <-release },
		Dropped:  func(n int) { dropped += n },
	}
	virtual(t, func(b *bench) {
		release = make(chan bool) // of this bubble
		x := b.acquire(b.locks, "held")
		b.took(0, 0, func() {
			for range 1000 {
				b.ok(b.acquire(b.locks, "name").Release(b.Context()))
			}
		})
		time.Sleep(10 * ttl)
		b.ok(x.Err())
		close(release)
		synctest.Wait()
		if dropped == 0 {
			b.Error("two thousand events were kept for an observer that was blocked")
		}
	}, observing(o))
}
