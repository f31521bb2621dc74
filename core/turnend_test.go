package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest"
)

// tired is longer than turns go on for.
const tired = 6 * time.Millisecond

func TestTurnsAreOverAfterFiveMilliseconds(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x, waiting := b.queue(20)
		rest := b.call(b.other()) // in the queue of the backend
		before := b.link.Calls(drivertest.OpRelease)
		turns := 1
		for ; b.link.Calls(drivertest.OpRelease) == before; turns++ {
			time.Sleep(time.Millisecond)
			b.ok(x.Release(b.Context()))
			if waiting[0].ended() {
				x, waiting = waiting[0].granted(), waiting[1:]
			}
		}
		if turns != 6 {
			b.Errorf("released after %d turns of a millisecond", turns)
		}
		b.took(0, 0, func() { // the other one, then we again
			b.ok(rest.granted().Release(b.Context()))
			waiting[0].granted()
		})
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
				sent, released := b.commands(), b.link.Calls(drivertest.OpRelease)
				for _, w := range calls[:turns-1] {
					b.ok(w.granted().Release(b.Context()))
				}
				last := calls[turns-1].granted()
				if n := b.commands() - sent; n != 0 {
					b.Errorf("%d commands for %d turns", n, turns)
				}
				b.ok(last.Release(b.Context()))
				if n := b.link.Calls(drivertest.OpRelease) - released; n != 1 || calls[turns].ended() == others {
					b.Errorf("%d releases; the next turn: %v", n, calls[turns].ended())
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

func TestAReleaseThatGoesWrongAfterTurnsLosesNobody(t *testing.T) {
	t.Parallel()
	fates := map[string]drivertest.Fate{
		"refused": drivertest.Refused, "request lost": drivertest.RequestLost, "reply lost": drivertest.ReplyLost,
		"reset": drivertest.ReplyReset, "held back": drivertest.HeldBack, "reply held back": drivertest.ReplyHeldBack,
	}
	for what, fate := range fates {
		for _, leaves := range []bool{false, true} {
			for _, others := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, leaves=%v, others=%v", what, leaves, others), func(t *testing.T) {
					t.Parallel()
					virtual(t, func(b *bench) { afterTurns(b, fate, leaves, others) })
				})
			}
		}
	}
}

// afterTurns has a release go wrong while others of this process wait. The first of them may leave meanwhile.
func afterTurns(b *bench, fate drivertest.Fate, leaves, others bool) {
	b.Helper()
	x, waiting := b.queue(4)
	if others {
		waiting = append(waiting, b.call(b.other()))
	}
	b.link.Next(drivertest.OpRelease, fate)
	time.Sleep(tired)
	released := make(chan error, 1)
	go func() { released <- x.Release(b.Context()) }()
	time.Sleep(time.Millisecond)
	if leaves {
		waiting[0].cancel()
		b.is(waiting[0].failed(), context.Canceled)
		waiting = waiting[1:]
	}
	time.Sleep(bound)
	b.link.Deliver()
	b.Log("the release, which may not know:", <-released)
	all := len(waiting)
	for range all { // in whatever order
		time.Sleep(time.Second)
		waiting = slices.DeleteFunc(waiting, func(w *call) bool {
			if !w.ended() {
				return false
			}
			b.ok(w.granted().Release(b.Context()))
			return true
		})
	}
	if len(waiting) > 0 {
		b.Errorf("%d of %d still wait", len(waiting), all)
	}
	time.Sleep(time.Second)
	b.free()
}

func TestWhatAnUnansweredAttemptAfterTurnsHasGrantedIsGivenBack(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x, waiting := b.queue(3)
		b.link.Next(drivertest.OpAcquire, drivertest.ReplyReset) // it was granted
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

func TestATenureThatEndsBeforeItsTurnsAreOverIsAskedForAnew(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x, waiting := b.queue(2)
		claim := b.link.LastClaim()
		time.Sleep(tired)
		b.ok(b.store.Release(b.Context(), claim)) // an operator
		b.is(x.Release(b.Context()), core.ErrLost)
		b.ok(waiting[0].granted().Release(b.Context()))
		b.free()
	})
}

func TestTheQueueOfOthersMovesOnBetweenTurns(t *testing.T) {
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
			for len(calls) > 0 {
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
