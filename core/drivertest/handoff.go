package drivertest

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// handedOff is a release of c that leaves the name for someHandoff.
func handedOff(c driver.Claim, keep time.Duration) driver.Claim {
	c.Handoff, c.Keep = someHandoff, keep
	return c
}

// taking is c, which takes over what was left for a hand-off.
func taking(c driver.Claim, handoff string) driver.Claim {
	c.Handoff = handoff
	return c
}

const (
	someHandoff  = "handoff-0000000000001"
	otherHandoff = "handoff-0000000000002"
)

// handoffCases test a name that goes from one process to another by a hand-off.
var handoffCases = []testCase{
	// A name that was left for a hand-off goes to that one and nobody else, the token that owned it included. It comes free at its
	// time, and then the hand-off is like none.
	{name: "ANameLeftForAHandoffGoesToNobodyElse", needs: []need{hands}, run: func(e *env) {
		a, b, mine, brief := e.Driver(), e.Driver(), e.claim("name"), e.claim("brief")
		e.grant(a, brief)
		left := time.Now()
		e.release(a, handedOff(brief, e.ttl/2))
		mine.Label = "who"
		first := e.grant(a, mine)
		e.release(a, handedOff(mine, time.Minute))
		for what, c := range map[string]driver.Claim{
			"one without a hand-off":    e.claim("name"),
			"one with another hand-off": taking(e.claim("name"), otherHandoff),
			"the token that owned it":   mine,
		} {
			held := e.refusal(b, c, what)
			if held.Label != "who" || held.Exact || held.Remaining < 0 || held.Remaining > time.Minute {
				e.Errorf("%s: %+v", what, held)
			}
		}
		if e.owns(a, mine) {
			e.Error("it still owns the name")
		}
		e.leaves(a, mine, "another release")
		right := taking(e.claim("name"), someHandoff)
		if g := e.grant(b, right); e.can.Fence && g.Fence <= first.Fence {
			e.Errorf("fence %d after %d", g.Fence, first.Fence)
		}
		e.freeAfter("brief", e.ttl/2+e.ttl/50, "its time")
		if after := time.Since(left); after < e.ttl/2 {
			e.Errorf("free after %s", after)
		}
		e.grant(a, e.claim("brief"))
		e.refused(b, taking(e.claim("brief"), someHandoff), "a hand-off whose time is over")
	}},
	// A hand-off works once, and again for the token that has used it, as after a lost reply. Then it is like none.
	{name: "AHandoffWorksOnceAndAgainForWhoHasUsedIt", needs: []need{hands}, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		old, mine, theirs := e.lasting("name"), taking(e.lasting("name"), someHandoff), taking(e.lasting("name"), someHandoff)
		e.grant(a, old)
		e.release(a, handedOff(old, time.Minute))
		first := e.grant(b, mine)
		if again := e.grant(b, mine); again.Fence < first.Fence {
			e.Errorf("fence %d after %d", again.Fence, first.Fence)
		}
		e.refused(a, theirs, "a used hand-off")
		e.noError(e.renew(b, mine))
		e.release(b, bare(mine))
		e.grant(a, theirs) // as anybody
	}},
	// A hand-off that no name was left for is like none: it is granted a free name, refused beside an owner, and waits as anybody.
	{name: "AHandoffOfNoNameIsAnOrdinaryClaim", needs: []need{hands}, run: func(e *env) {
		holder, d, c := e.Driver(), e.Driver(), taking(e.lasting("name"), someHandoff)
		e.grant(holder, c)
		e.refused(d, taking(e.claim("name"), someHandoff), "the same hand-off")
		w := e.waits(d, taking(e.long("name"), someHandoff))
		if w.ended() {
			e.Fatalf("%+v, %v", w.g, w.err)
		}
		e.release(holder, bare(c))
		w.granted(e.hearing(w.c)+driver.Recheck(w.c.TTL)/10, "the waiter")
	}},
	// A hand-off goes before the queue, which is served after it.
	{name: "AHandoffGoesBeforeTheQueue", needs: []need{hands}, run: func(e *env) {
		holder, d, other := e.Driver(), e.Driver(), e.Driver()
		waiting, taken := e.long("name"), taking(e.lasting("name"), someHandoff)
		held := e.holds(holder, "name").c
		w := e.waits(d, waiting)
		e.release(holder, handedOff(held, time.Minute))
		e.sleep(e.ttl / 20)
		if w.ended() {
			e.Fatal("the waiter has it")
		}
		e.grant(other, taken)
		if w.ended() {
			e.Fatal("the waiter has it, too")
		}
		e.release(other, bare(taken))
		w.granted(e.hearing(waiting), "the waiter")
		e.release(d, waiting)
		e.nothingLeft()
	}},
}
