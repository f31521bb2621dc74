package drivertest

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// kept is a release of c that leaves the name taken.
func kept(c driver.Claim, d time.Duration) driver.Claim {
	c.Keep = d
	return c
}

// keepCases test a name that stays taken after its release.
var keepCases = []testCase{
	{name: "AKeptNameIsTakenByNobodyUntilItsTime", needs: []need{keeps}, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		mine := e.claim("name")
		mine.Label = "who"
		e.grant(a, mine)
		if held := e.refusal(b, e.claim("name"), "beside its owner"); held.Exact {
			e.Error("an owner's name is exactly held")
		}
		released := time.Now()
		e.release(a, kept(mine, e.ttl/2))
		var many sync.WaitGroup
		for i := range 16 {
			c := e.claim("name")
			if i == 0 {
				c = mine // the token that owned it
			}
			many.Go(func() {
				_, err := b.Acquire(e.ctx, c)
				held := driver.Explain(err).Held
				if held == nil || held.Label != "who" || !held.Exact || held.Remaining < 0 || held.Remaining > e.ttl/2 {
					e.Errorf("%v %+v", err, held)
				}
			})
		}
		many.Wait()
		if e.owns(a, mine) {
			e.Error("it still owns the name")
		}
		e.leaves(a, mine, "another release")
		e.leaves(a, kept(mine, e.ttl), "another release that keeps")
		e.freeAfter(e.ttl/2+e.ttl/50, "its time")
		if after := time.Since(released); after < e.ttl/2 {
			e.Errorf("free after %s", after)
		}
	}},
	{name: "ANameIsKeptForLongerThanItsTTL", needs: []need{keeps}, run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		e.grant(d, c)
		e.release(d, kept(c, 2*e.ttl))
		e.sleep(e.ttl * 3 / 2)
		e.refused(d, e.claim("name"), "within its time")
	}},
	{name: "AKeptNameHasItsMarker", needs: []need{keeps, dedups}, run: func(e *env) {
		d, c := e.Driver(), e.marked("name", "pay")
		e.grant(d, c)
		e.release(d, kept(c, e.ttl/2))
		e.duplicate(d, e.marked("name", "pay"), "the next")
		e.refused(d, e.claim("name"), "within its time")
	}},
	{name: "AWaiterGetsAKeptNameAtItsTime", needs: []need{keeps}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		held, c := e.lasting("name"), e.long("name")
		e.grant(holder, held)
		w := e.waits(d, c)
		released := time.Now()
		e.release(holder, kept(held, e.ttl))
		w.granted(e.ttl+e.pace(c), "the waiter")
		if after := time.Since(released); after < e.ttl {
			e.Errorf("granted after %s", after)
		}
	}},
	{name: "AnAcquireWithKeepIsAGrantAsAnyOther", needs: []need{keeps}, run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		c.Keep = e.ttl / 2
		e.grant(d, c)
		e.noError(e.renew(d, c))
		e.release(d, bare(c))
		e.free("name")
	}},
}
