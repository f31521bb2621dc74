package drivertest

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// permit makes a claim of which limit can own the name together. It outlasts the case.
func (e *env) permit(name string, limit int) driver.Claim {
	c := e.lasting(name)
	c.Limit = limit
	return c
}

// limitCases test several holders of a kind.
var limitCases = []testCase{
	// As many hold a name as the limit allows, from whichever process, and no more, nor anybody exclusive beside them.
	{name: "AsManyHoldAsTheLimitAllows", needs: []need{limits}, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		permits := []driver.Claim{e.permit("name", 3), e.permit("name", 3), e.permit("name", 3)}
		for i, c := range permits {
			if g := e.grant([]driver.Driver{a, b}[i%2], c); g.Fence != 0 || g.Limit != 0 {
				e.Errorf("grant says %+v", g)
			}
		}
		held := e.refusal(b, e.permit("name", 3), "one too many")
		if held.Label != "" || held.Exact || held.Limit != 0 || held.Remaining < 0 || held.Remaining > permits[0].TTL {
			e.Errorf("held says %+v", held)
		}
		e.refused(b, e.claim("name"), "an exclusive claim beside permits")
		e.release(b, permits[0]) // by whichever process
		e.grant(b, e.permit("name", 3))
		e.refused(a, e.permit("name", 3), "one too many again")
	}},
	// Where limits differ the smallest of the owners' and the own one counts. Whoever has a larger one is told.
	{name: "WhereLimitsDifferTheSmallestCounts", needs: []need{limits}, run: func(e *env) {
		d := e.Driver()
		small := e.permit("name", 2)
		e.grant(d, e.permit("name", 4))
		if g := e.grant(d, small); g.Limit != 0 {
			e.Errorf("the smallest is told of %d", g.Limit)
		}
		if held := e.refusal(d, e.permit("name", 4), "a third beside a limit of two"); held.Limit != 2 {
			e.Errorf("held says %+v", held)
		}
		e.refused(d, e.permit("name", 2), "a third")
		e.release(d, small)
		e.grant(d, e.permit("name", 4)) // nobody who counts wants fewer
		e.grant(d, e.permit("name", 4))
		if held := e.refusal(d, e.permit("name", 3), "a fourth who allows three"); held.Limit != 0 {
			e.Errorf("held says %+v", held)
		}
		e.grant(d, e.permit("name", 4))
		e.grant(d, e.permit("another", 2))
		if g := e.grant(d, e.permit("another", 5)); g.Limit != 2 {
			e.Errorf("grant says %+v", g)
		}
	}},
	// A waiter gets the permit that is released, and the next one that of a holder that dies, not before its time.
	{name: "AWaiterGetsThePermitThatComesFree", needs: []need{limits}, run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		one, two, dead := e.permit("name", 3), e.permit("name", 3), e.brief(e.permit("name", 3))
		for _, c := range []driver.Claim{one, two} {
			e.grant(d, c)
		}
		began := time.Now()
		e.grant(d, dead)
		w := e.waits(other, e.permit("name", 3))
		if w.ended() {
			e.Fatalf("one too many: %v", w.err)
		}
		e.release(d, two)
		w.granted(e.hearing(w.c)+e.ttl/100, "the waiter")
		e.refused(d, e.permit("name", 3), "one too many")
		next := e.waits(other, e.permit("name", 3))
		next.granted(e.ttl+e.pace(next.c), "the next one")
		if time.Since(began) < e.ttl {
			e.Error("one too many")
		}
	}},
}
