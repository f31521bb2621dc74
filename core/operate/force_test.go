package operate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// tired is longer than turns go on for.
const tired = 6 * time.Millisecond

func TestAForceReleaseFreesTheLeaseOfThatHandleAndNoOther(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.process(core.WithLabel("host-1")), "name")
		next := b.call(b.process())
		handle := b.handles()[0]
		b.others("0123456789abcdef")
		b.others(handle[1:])
		b.taken(x, false)
		began := time.Now()
		b.force(handle, true)
		y := <-next // the next in line is told
		if took := time.Since(began); took > 0 {
			b.Errorf("the next one has it after %s", took)
		}
		backendtest.OK(b, x.Err()) // nobody has told it yet
		b.taken(x, true)
		backendtest.OK(b, y.Err())
		b.others(handle)
		backendtest.OK(b, y.Release(b.Context()))
		b.force(handle, false)
	})
}

func TestAHandleFreesWhatWasNeverRenewed(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.acquire(b.process(), "name", core.WithoutRenewal())
		handle := b.handles()[0]
		b.force(handle, true)
		b.acquire(b.process(), "name")
		b.others(handle)
	})
}

func TestOfThoseWhoShareANameOneIsForcedOut(t *testing.T) {
	t.Parallel()
	for _, kind := range []core.Option{core.WithShared(), core.WithLimit(2)} {
		virtual(t, func(b *bench) {
			x := b.acquire(b.process(), "name", kind)
			first := b.handles()
			y := b.acquire(b.process(), "name", kind)
			if all := b.handles(); len(first) != 1 || len(all) != 2 {
				b.Fatalf("handles %q, then %q", first, all)
			}
			b.force(first[0], true)
			b.taken(x, true)
			b.taken(y, false)
			b.force(b.handles()[0], true)
			b.taken(y, true)
			b.acquire(b.process(), "name")
		})
	}
}

// Turns in the first milliseconds of a grant are given without a command, so they have its handle. They are over a few milliseconds
// after the grant, whatever is renewed: so an operator who has looked takes the name from whom it was shown for, or from one who has
// followed at once, or from nobody.
func TestAForceReleaseNeverHitsALaterTurn(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		opts  []core.Option
		known func(b *bench, x *core.Lease)
		turn  bool
	}{
		"fresh":   {known: func(*bench, *core.Lease) {}, turn: true},
		"old":     {known: func(*bench, *core.Lease) { time.Sleep(tired) }},
		"renewed": {known: func(*bench, *core.Lease) { time.Sleep(ttl) }},
		"confirmed": {opts: []core.Option{core.WithoutRenewal()}, known: func(b *bench, x *core.Lease) {
			time.Sleep(ttl * 6 / 10)
			backendtest.OK(b, core.Confirm(x.Context()))
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				locks := b.process()
				holder := b.acquire(b.process(), "name")
				first, second := b.call(locks, row.opts...), b.call(locks, row.opts...)
				time.Sleep(driver.Recheck(ttl) + time.Millisecond) // the next look asks for fences for those behind
				backendtest.OK(b, holder.Release(b.Context()))
				x := <-first
				time.Sleep(time.Nanosecond)
				synctest.Wait() // the grant is proved
				row.known(b, x)
				handle := b.handles()[0]
				backendtest.OK(b, x.Release(b.Context()))
				y := <-second
				if now := b.handles()[0]; (now == handle) != row.turn {
					b.Errorf("handle %s, and then %s", handle, now)
				}
				if row.turn {
					b.force(handle, true)
				} else {
					b.others(handle)
				}
				b.taken(y, row.turn)
			})
		})
	}
}
