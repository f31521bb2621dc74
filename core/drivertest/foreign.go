package drivertest

import "github.com/holdfast-go/holdfast/core/driver"

// foreignCases test names that other software holds.
var foreignCases = []testCase{
	{name: "AForeignValueIsHeldAndNeverOverwritten", needs: []need{foreign}, run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		e.Overwrite("name")
		if held := e.refusal(d, c, "beside other software"); held.Label != "" {
			e.Errorf("%+v", held)
		}
		e.leaves(d, c, "what is not ours")
		if e.owns(d, c) {
			e.Error("it owns what is not ours")
		}
		e.refused(d, c, "the foreign value is gone")
		e.Delete("name")
		e.grant(d, c)
	}},
	{name: "AnOverwrittenLeaseIsLostAndNotTouched", needs: []need{foreign}, run: func(e *env) {
		d, c := e.Driver(), e.lasting("name")
		e.grant(d, c)
		e.Overwrite("name")
		if e.owns(d, c) || e.renew(d, c) == nil {
			e.Error("it owns what was overwritten")
		}
		e.leaves(d, c, "what was overwritten")
		e.refused(e.Driver(), e.claim("name"), "the foreign value is gone")
	}},
	{name: "ADeletedLeaseIsLost", needs: []need{foreign}, run: func(e *env) {
		d, other, c, next := e.Driver(), e.Driver(), e.lasting("name"), e.lasting("name")
		before := e.grant(d, c)
		e.Delete("name")
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
