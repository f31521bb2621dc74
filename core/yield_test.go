package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest"
)

// tired is longer than turns go on for.
const tired = 6 * time.Millisecond

func TestTurnsAreOverAfterFiveMillisecondsAndYieldedOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x, waiting := b.queue(20)
		rest := b.call(b.other()) // in line at the backend
		before := b.link.Calls(drivertest.OpRelease)
		turns := 1
		for ; b.link.Calls(drivertest.OpYield) == 0; turns++ {
			time.Sleep(time.Millisecond)
			b.ok(x.Release(b.Context()))
			if waiting[0].ended() {
				x, waiting = waiting[0].granted(), waiting[1:]
			}
		}
		if turns != 6 {
			b.Errorf("yielded after %d turns of a millisecond", turns)
		}
		b.took(0, 0, func() { // the other one, then we again
			b.ok(rest.granted().Release(b.Context()))
			waiting[0].granted()
		})
		if n := b.link.Calls(drivertest.OpRelease) - before; n != 0 {
			b.Errorf("%d releases", n)
		}
		for _, w := range waiting {
			b.ok(w.granted().Release(b.Context()))
		}
		b.free()
	})
}

func TestTurnsAreOverWithTheirFences(t *testing.T) {
	t.Parallel()
	for others, turns := range map[bool]int{false: 256, true: 32} {
		t.Run(fmt.Sprintf("others=%v", others), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				holder := b.acquire(b.other(), "name")
				var calls []*call
				for range turns + 5 {
					calls = append(calls, b.call(b.locks))
				}
				var rest *call
				if others {
					rest = b.call(b.other())
				}
				b.served(holder, calls[0])
				sent := b.commands()
				for _, w := range calls[:turns-1] {
					b.ok(w.granted().Release(b.Context()))
				}
				last := calls[turns-1].granted()
				if n := b.commands() - sent; n != 0 {
					b.Errorf("%d commands for %d turns", n, turns)
				}
				b.ok(last.Release(b.Context()))
				next := calls[turns]
				if next.ended() == others || b.link.Calls(drivertest.OpYield) != 1 {
					b.Errorf("%d yields; the next turn: %v", b.link.Calls(drivertest.OpYield), next.ended())
				}
				if others {
					b.ok(rest.granted().Release(b.Context()))
				}
				fence := last.Fence()
				for _, w := range calls[turns:] {
					if f := w.granted().Fence(); f <= fence {
						b.Errorf("fence %d after %d", f, fence)
					}
					fence = w.lease.Fence()
					b.ok(w.lease.Release(b.Context()))
				}
				b.free()
			})
		})
	}
}

func TestAYieldThatGoesWrongLosesNothing(t *testing.T) {
	t.Parallel()
	fates := map[string]drivertest.Fate{
		"refused": drivertest.Refused, "request lost": drivertest.RequestLost, "reply lost": drivertest.ReplyLost,
		"reset": drivertest.ReplyReset, "held back": drivertest.HeldBack, "reply held back": drivertest.ReplyHeldBack,
	}
	for what, fate := range fates {
		for _, others := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, others=%v", what, others), func(t *testing.T) {
				t.Parallel()
				virtual(t, func(b *bench) {
					x, waiting := b.queue(3)
					rest := waiting[1]
					if others {
						rest = b.call(b.other())
					}
					b.link.Next(drivertest.OpYield, fate)
					time.Sleep(tired)
					b.ok(x.Release(b.Context()))
					time.Sleep(bound)
					b.link.Deliver()
					for range 3 {
						for _, w := range append(waiting[:2:2], rest) {
							if w.ended() && w.granted().Err() == nil {
								b.ok(w.lease.Release(b.Context()))
							}
						}
						time.Sleep(tired)
					}
					waiting[0].granted()
					waiting[1].granted()
					rest.granted()
					b.free()
				})
			})
		}
	}
}

func TestAYieldWhoseCallerGoesAwayLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	fates := map[string]drivertest.Fate{
		"delivered": drivertest.Delivered, "refused": drivertest.Refused, "request lost": drivertest.RequestLost,
		"reply lost": drivertest.ReplyLost, "reset": drivertest.ReplyReset, "held back": drivertest.HeldBack,
		"reply held back": drivertest.ReplyHeldBack,
	}
	for what, fate := range fates {
		for _, n := range []int{2, 3} { // with somebody of this process behind it
			for _, others := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, waiters=%d, others=%v", what, n-1, others), func(t *testing.T) {
					t.Parallel()
					virtual(t, func(b *bench) { abandonedYield(b, n, fate, others) })
				})
			}
		}
	}
}

func abandonedYield(b *bench, n int, fate drivertest.Fate, others bool) {
	b.Helper()
	x, waiting := b.queue(n)
	if others {
		waiting = append(waiting, b.call(b.other()))
	}
	b.link.Next(drivertest.OpYield, fate)
	b.link.Delay(0, time.Millisecond)
	time.Sleep(tired)
	b.ok(x.Release(b.Context()))
	synctest.Wait() // it is on its way
	waiting[0].cancel()
	if !waiting[0].ended() {
		b.Error("it still waits")
	}
	time.Sleep(20 * time.Millisecond) // releases go out again
	b.link.Deliver()
	for range waiting[1:] { // in whatever order
		time.Sleep(20 * time.Millisecond)
		for _, w := range waiting[1:] {
			if w.ended() && w.granted().Err() == nil {
				b.ok(w.lease.Release(b.Context()))
			}
		}
	}
	for _, w := range waiting[1:] {
		w.granted()
	}
	time.Sleep(20 * time.Millisecond)
	b.free()
}

func TestAYieldThatComesAfterEverythingElseLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		t.Run(fmt.Sprintf("others=%v", others), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				x, waiting := b.queue(2)
				var rest *call
				if others {
					rest = b.call(b.other())
				}
				b.link.Next(drivertest.OpYield, drivertest.HeldBack)
				b.link.All(drivertest.RequestLost, drivertest.OpRelease)
				time.Sleep(tired)
				b.ok(x.Release(b.Context()))
				synctest.Wait() // it is on its way
				waiting[0].cancel()
				time.Sleep(bound + time.Second) // all releases have gone in vain
				b.link.All(drivertest.Delivered, drivertest.OpRelease)
				b.link.Deliver() // the name goes to nobody, or nobody lines up
				if others {
					b.ok(rest.granted().Release(b.Context()))
				}
				synctest.Wait()
				b.free()
			})
		})
	}
}

func TestWhatAnUnansweredYieldHasGrantedIsGivenBack(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x, waiting := b.queue(3)
		b.link.Next(drivertest.OpYield, drivertest.ReplyReset) // it was granted
		b.link.All(drivertest.Refused, drivertest.OpAcquire)
		time.Sleep(tired)
		b.ok(x.Release(b.Context()))
		time.Sleep(tired)
		waiting[0].cancel()
		b.is(waiting[0].failed(), context.Canceled)
		b.link.All(drivertest.Delivered, drivertest.OpAcquire)
		time.Sleep(time.Second / 2) // the next one polls
		b.ok(waiting[1].granted().Release(b.Context()))
		b.free()
	})
}

func TestATenureThatEndsBeforeItIsYieldedIsAskedForAnew(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x, waiting := b.queue(2)
		claim := b.link.LastClaim()
		time.Sleep(tired)
		b.ok(b.store.Release(b.Context(), claim)) // an operator
		b.ok(turnAfter(x, waiting[0]).Release(b.Context()))
		b.free()
	})
}

func TestTheLineOfOthersMovesOnThroughYields(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		lockers := []*core.Locker{b.locks, b.other(), b.other()}
		holder := b.acquire(b.other(), "name")
		var calls []*call
		for i := range 30 {
			calls = append(calls, b.call(lockers[i%3]))
		}
		b.ok(holder.Release(b.Context()))
		b.took(30*tired, 0, func() { // no time passes between two holders
			for range calls {
				i := 0
				b.eventually("the next holder", func() bool {
					i = slices.IndexFunc(calls, (*call).ended)
					return i >= 0
				})
				time.Sleep(tired)
				b.ok(calls[i].granted().Release(b.Context()))
				calls = slices.Delete(calls, i, i+1)
			}
		})
		b.free()
	})
}
