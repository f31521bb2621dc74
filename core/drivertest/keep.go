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
	// A name that is kept is nobody's until its time, be that shorter or longer than its TTL was: not the token's that owned
	// it either, which neither renews nor releases it. That is for the release to say: Keep in an Acquire keeps nothing.
	{name: "AKeptNameIsTakenByNobodyUntilItsTime", needs: []need{keeps}, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		mine, long := e.claim("name"), e.claim("long")
		e.grant(a, long)
		e.release(a, kept(long, time.Minute))
		asked := kept(e.claim("name"), e.ttl/2)
		e.grant(a, asked)
		e.noError(e.renew(a, asked))
		e.release(a, bare(asked))
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
		e.freeAfter("name", e.ttl/2+e.ttl/50, "its time")
		if after := time.Since(released); after < e.ttl/2 {
			e.Errorf("free after %s", after)
		}
		e.sleep(e.ttl)
		e.refused(b, e.claim("long"), "within its time, which is longer than its TTL")
	}},
	// A waiter gets a kept name at its time, neither earlier nor later.
	{name: "AWaiterGetsAKeptNameAtItsTime", needs: []need{keeps}, run: func(e *env) {
		holder, d, c := e.Driver(), e.Driver(), e.long("name")
		held := e.holds(holder, "name").c
		w := e.waits(d, c)
		released := time.Now()
		e.release(holder, kept(held, e.ttl))
		w.granted(e.ttl+e.pace(c), "the waiter")
		if after := time.Since(released); after < e.ttl {
			e.Errorf("granted after %s", after)
		}
	}},
}
