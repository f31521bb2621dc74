package drivertest

import (
	"sync"
	"sync/atomic"
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
	{name: "KindsDoNotGoTogether", needs: []need{limits, shares}, run: func(e *env) {
		d := e.Driver()
		kinds := map[string]func() driver.Claim{
			"exclusive":      func() driver.Claim { return e.claim("name") },
			"shared":         func() driver.Claim { return e.reader("name") },
			"limited":        func() driver.Claim { return e.permit("name", 3) },
			"limited to one": func() driver.Claim { return e.permit("name", 1) },
		}
		for owner, own := range kinds {
			for who, want := range kinds {
				if owner == who && (who == "shared" || who == "limited") {
					continue
				}
				c := own()
				e.grant(d, c)
				e.refused(d, want(), who+" beside "+owner)
				e.release(d, c)
			}
		}
	}},
	{name: "EachPermitHasItsOwnTime", needs: []need{limits}, run: func(e *env) {
		d := e.Driver()
		short, long := e.brief(e.permit("name", 2)), e.permit("name", 2)
		e.grant(d, long)
		e.grant(d, short)
		if held := e.refusal(d, e.permit("name", 2), "one too many"); held.Remaining > e.ttl {
			e.Errorf("the first comes free in %s", held.Remaining)
		}
		e.eventually("the short one ends", func() bool { return !e.owns(d, short) })
		if !e.owns(d, long) {
			e.Error("both have ended")
		}
		e.grant(d, e.permit("name", 2)) // in the place of the one that died
		e.refused(d, e.permit("name", 2), "one too many again")
	}},
	{name: "APermitsAcquireIsIdempotentPerToken", needs: []need{limits}, run: func(e *env) {
		d, c, other := e.Driver(), e.permit("name", 2), e.permit("name", 2)
		e.grant(d, c)
		e.grant(d, c) // and takes no second one
		e.grant(d, other)
		e.grant(d, c) // also where there is no room for another one
		e.release(d, c)
		e.release(d, other)
		e.free("name")
	}},
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
	{name: "AWaiterGetsThePermitThatComesFree", needs: []need{limits}, run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		one, two, next := e.permit("name", 2), e.permit("name", 2), e.permit("name", 2)
		e.grant(d, one)
		e.grant(d, two)
		w := e.waits(other, next)
		if w.ended() {
			e.Fatalf("one too many: %v", w.err)
		}
		e.release(d, two)
		w.granted(e.hearing(next)+e.ttl/100, "the waiter")
		e.refused(d, e.permit("name", 2), "one too many")
	}},
	{name: "AWaiterGetsThePermitOfOneThatDied", needs: []need{limits}, run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		one, dead, next := e.permit("name", 2), e.brief(e.permit("name", 2)), e.permit("name", 2)
		e.grant(d, one)
		e.grant(d, dead)
		began := time.Now()
		w := e.waits(other, next)
		w.granted(e.ttl+e.pace(next), "the waiter")
		if time.Since(began) < e.ttl*9/10 {
			e.Error("one too many")
		}
	}},
	{name: "NeverMoreThanTheLimitUnderConcurrency", crowd: true, needs: []need{limits}, run: func(e *env) {
		var wg sync.WaitGroup
		var inside, most atomic.Int32
		drivers := []driver.Driver{e.Driver(), e.Driver()}
		for i := range 8 {
			d := drivers[i%2]
			wg.Go(func() {
				for range 8 {
					c := e.permit("name", 3)
					if _, err := e.wait(d, c); err != nil {
						e.Errorf("wait: %v", err)
						return
					}
					n := inside.Add(1)
					if n > 3 {
						e.Errorf("%d at once", n)
					}
					if n > most.Load() {
						most.Store(n)
					}
					time.Sleep(e.ttl/200 + e.Slow/2)
					inside.Add(-1)
					if err := d.Release(e.ctx, c); err != nil {
						e.Errorf("release: %v", err)
					}
				}
			})
		}
		wg.Wait()
		if most.Load() < 2 && e.can.Queue {
			e.Error("no two have met")
		}
		e.nothingLeft()
	}},
}
