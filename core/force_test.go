package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// handles are those of all who have the name, as Inspect shows them.
func (b *bench) handles(l *core.Locker) (all []string) {
	b.Helper()
	info, err := l.Inspect(b.Context(), "name")
	b.ok(err)
	for _, h := range info.Holders {
		all = append(all, h.Handle)
	}
	if info.Handle != "" {
		all = append(all, info.Handle)
	}
	return all
}

// taken fails the test unless x is told that its name was taken, or that it was not.
func (b *bench) taken(x *core.Lease, want bool) {
	b.Helper()
	err := x.Check(b.Context())
	if lost, ok := errors.AsType[*core.LostError](err); want != (ok && lost.Reason == core.ReasonTaken) || !want && err != nil {
		b.Errorf("%v: taken: %v", err, want)
	}
}

func TestAHandleFreesWhatWasNeverRenewed(t *testing.T) {
	t.Parallel()
	watched(t, func(b *bench, process func(...core.NewOption) *core.Locker) {
		operator := process()
		x := b.acquire(process(), "name", core.WithoutRenewal())
		handles := b.handles(operator)
		freed, err := operator.ForceRelease(b.Context(), "name", handles[0][1:])
		if _, held := errors.AsType[*core.HeldError](err); freed || !held {
			b.Errorf("another handle: %v, %v", freed, err)
		}
		b.taken(x, false)
		if freed, err := operator.ForceRelease(b.Context(), "name", handles[0]); !freed || err != nil {
			b.Errorf("%v, %v", freed, err)
		}
		b.taken(x, true)
		y := b.acquire(process(), "name")
		freed, err = operator.ForceRelease(b.Context(), "name", handles[0])
		if _, held := errors.AsType[*core.HeldError](err); freed || !held {
			b.Errorf("of who came since: %v, %v", freed, err)
		}
		b.ok(y.Release(b.Context()))
		if freed, err := operator.ForceRelease(b.Context(), "name", handles[0]); freed || err != nil {
			b.Errorf("of a free name: %v, %v", freed, err)
		}
		_, err = operator.ForceRelease(b.Context(), "name", "")
		b.is(err, core.ErrInvalid)
	})
}

func TestOfThoseWhoShareANameOneIsForcedOut(t *testing.T) {
	t.Parallel()
	for what, kind := range map[string]core.Option{"shared": core.WithShared(), "limited": core.WithLimit(2)} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			watched(t, func(b *bench, process func(...core.NewOption) *core.Locker) {
				operator := process()
				x := b.acquire(process(), "name", kind)
				first := b.handles(operator)
				y := b.acquire(process(), "name", kind)
				if all := b.handles(operator); len(first) != 1 || len(all) != 2 {
					b.Fatalf("handles %q, then %q", first, all)
				}
				b.taken(x, false)
				if freed, err := operator.ForceRelease(b.Context(), "name", first[0]); !freed || err != nil {
					b.Errorf("%v, %v", freed, err)
				}
				b.taken(x, true)
				b.taken(y, false)
				if freed, err := operator.ForceRelease(b.Context(), "name", b.handles(operator)[0]); !freed || err != nil {
					b.Errorf("%v, %v", freed, err)
				}
				b.taken(y, true)
				b.ok(b.acquire(process(), "name").Release(b.Context()))
			})
		})
	}
}

// A turn in the first milliseconds of a tenure is given without a command: it has the tenure's handle.
func TestAHandleIsThatOfTheTenure(t *testing.T) {
	t.Parallel()
	watched(t, func(b *bench, process func(...core.NewOption) *core.Locker) {
		locks, operator := process(), process()
		holder := b.acquire(process(), "name")
		first, second, third := b.call(locks), b.call(locks), b.call(locks)
		time.Sleep(driver.Recheck(ttl)) // the next offer has fences for those behind
		b.ok(holder.Release(b.Context()))
		x := first.granted()
		handle := b.handles(operator)[0]
		y := turnAfter(x, second)
		if now := b.handles(operator)[0]; now != handle {
			b.Errorf("a turn has the handle %s, its tenure %s", now, handle)
		}
		time.Sleep(tired)
		z := turnAfter(y, third) // of another tenure
		if now := b.handles(operator)[0]; now == handle {
			b.Error("two tenures have one handle")
		}
		b.ok(z.Release(b.Context()))
	})
}

func TestAKeptNameIsShownAndCanBeFreed(t *testing.T) {
	t.Parallel()
	watched(t, func(b *bench, process func(...core.NewOption) *core.Locker) {
		operator := process()
		b.ok(b.acquire(process(core.WithLabel("host-1")), "name", core.WithMinHold(time.Hour)).Release(b.Context()))
		info, err := operator.Inspect(b.Context(), "name")
		b.ok(err)
		if !info.Held || !info.Kept || info.Label != "host-1" || info.Remaining != time.Hour {
			b.Errorf("%+v", info)
		}
		if freed, err := operator.ForceRelease(b.Context(), "name", info.Handle); !freed || err != nil {
			b.Errorf("%v, %v", freed, err)
		}
		b.ok(b.acquire(process(), "name").Release(b.Context()))
	})
}
