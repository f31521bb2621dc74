package core_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// busy is the context of a caller who, once it stands in line, does not look for a while: so
// what it is called up with, and what else happens, come at the same time.
type busy struct {
	context.Context
	once *sync.Once
	d    time.Duration
}

func (c busy) Done() <-chan struct{} {
	c.once.Do(func() { time.Sleep(c.d) })
	return c.Context.Done()
}

// busyCall is call for a caller who looks after d.
func (b *bench) busyCall(l *core.Locker, d time.Duration) *call {
	return b.goes(b.Context(), func(ctx context.Context) (*core.Lease, error) {
		return l.Acquire(busy{ctx, new(sync.Once), d}, "name")
	})
}

func TestCloseTakesBackATurnThatNobodyHasSeen(t *testing.T) {
	t.Parallel()
	for _, hold := range []time.Duration{0, tired} {
		for range 10 { // it may see either first
			virtual(t, func(b *bench) {
				holder := b.acquire(b.other(), "name")
				first, w := b.call(b.locks), b.busyCall(b.locks, 2*tired)
				b.ok(holder.Release(b.Context()))
				x := first.granted()
				time.Sleep(hold)
				b.ok(x.Release(b.Context()))
				b.took(2*tired-hold, 0, func() { b.ok(b.locks.Close(b.Context())) })
				<-w.over
				b.is(w.err, core.ErrClosed)
				b.free()
			})
		}
	}
}

func TestAClosedLockerGivesNoTurns(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		first, w := b.call(b.locks), b.busyCall(b.locks, 2*tired)
		b.ok(holder.Release(b.Context()))
		x := first.granted()
		closed := b.begin(func() error { return b.locks.Close(b.Context()) })
		b.is(context.Cause(x.Context()), core.ErrClosed)
		b.ok(x.Release(b.Context()))
		b.free()
		b.ok(<-closed)
		b.is(w.failed(), core.ErrClosed)
		if told := r.take(); strings.Count(told, "acquired") != 1 {
			b.Error(told)
		}
	}, observing(r.observer()))
}

func TestObserversSeeEachTurnComeAndGo(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	virtual(t, func(b *bench) {
		inAnyOrder := func(want ...string) { // who is told first of two leases is not determined
			b.Helper()
			got := strings.Split(r.take(), "; ")
			slices.Sort(got)
			if !slices.Equal(got, want) {
				b.Errorf("told %q, not %q", got, want)
			}
		}
		holder := b.acquire(b.other(), "name")
		var calls []*call
		for _, template := range []string{"a", "b", "c"} {
			calls = append(calls, b.call(b.locks, core.WithTemplate(template)))
		}
		time.Sleep(time.Second / 2)
		b.ok(holder.Release(b.Context()))
		x := calls[0].granted()
		r.told(b, "waited a 500ms ok=true; acquired a 500ms reentry=false fence=true")
		time.Sleep(time.Millisecond)
		y := turnAfter(x, calls[1])
		inAnyOrder("acquired b 501ms reentry=false fence=true", "released a 1ms marked=false", "waited b 501ms ok=true")
		time.Sleep(tired)
		z := turnAfter(y, calls[2]) // yielded
		inAnyOrder("acquired c 507ms reentry=false fence=true", "released b 6ms marked=false", "waited c 507ms ok=true")
		b.ok(z.Release(b.Context()))
		r.told(b, "released c 0s marked=false")
	}, observing(r.observer()))
}
