package drivertest

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// foreignCases test names that other software holds.
var foreignCases = []testCase{
	// What other software holds is held, and is neither overwritten, owned nor released, by a claim of whatever kind. A lease that it
	// has overwritten is lost, also when others have the name later.
	{name: "AForeignValueIsHeldAndNeverOverwritten", needs: []need{foreign}, run: func(e *env) {
		d := e.Driver()
		for _, overwritten := range []bool{false, true} {
			for what, c := range e.kinds(always("name")) {
				if overwritten {
					e.grant(d, c)
				}
				e.Overwrite("name")
				if e.owns(d, c) || e.renew(d, c) == nil {
					e.Errorf("%s: it owns what is not ours", what)
				}
				e.leaves(d, c, "what is not ours")
				next := c
				next.Token = token()
				if held := e.refusal(d, next, what+" beside other software"); held.Label != "" {
					e.Errorf("%s: %+v", what, held)
				}
				e.refused(d, c, what+": the foreign value is gone")
				e.Delete("name")
				e.grant(d, next)
				if e.owns(d, c) {
					e.Errorf("%s: it owns what others have now", what)
				}
				e.release(d, next)
			}
		}
	}},
	// A lease that was deleted is lost: the next owner is not touched by it, and has a larger fence.
	{name: "ADeletedLeaseIsLost", needs: []need{deletes}, run: func(e *env) {
		d, other, c, next := e.Driver(), e.Driver(), e.lasting("name"), e.lasting("name")
		before := e.grant(d, c)
		e.Delete("name")
		e.sleep(2 * time.Millisecond) // a fence after what was deleted comes from a clock, which may count milliseconds
		if e.renew(d, c) == nil {
			e.Error("it owns what was deleted")
		}
		after := e.grant(other, next)
		if e.can.Fence && after.Fence <= before.Fence {
			e.Errorf("fence %d after %d", after.Fence, before.Fence)
		}
		e.leaves(d, c, "what was deleted")
		if !e.owns(other, next) {
			e.Error("that has touched the next owner")
		}
	}},
	// A waiter gets the name that other software held, once that is gone and not before.
	{name: "AWaiterGetsWhatAForeignHolderLeaves", needs: []need{foreign}, run: func(e *env) {
		d, c := e.Driver(), e.long("name")
		e.Overwrite("name")
		w := e.waits(d, c)
		e.sleep(e.ttl / 2)
		if w.ended() {
			e.Fatalf("%+v, %v", w.g, w.err)
		}
		e.Delete("name")
		w.granted(e.pace(c)+2*driver.Recheck(c.TTL), "the waiter")
	}},
	// Other software that takes a name before its queue does is waited for, and the queue goes on in its order.
	{name: "AForeignValueInFrontOfAQueueIsWaitedFor", needs: []need{foreign, whole, queues}, run: func(e *env) {
		holder, first, second := e.Driver(), e.Driver(), e.Driver()
		held, a, b := e.lasting("name"), e.long("name"), e.long("name")
		e.grant(holder, held)
		w, next := e.waits(first, a), e.waits(second, b)
		e.Overwrite("name")
		e.leaves(holder, held, "what was overwritten")
		e.sleep(e.ttl)
		if w.ended() || next.ended() {
			e.Fatalf("the foreign value was overwritten: %v, %v", w.err, next.err)
		}
		e.Delete("name")
		w.granted(2*driver.Recheck(a.TTL), "the first")
		e.release(first, a)
		next.granted(2*driver.Recheck(b.TTL), "the second")
		e.release(second, b)
		e.nothingLeft()
	}},
}
