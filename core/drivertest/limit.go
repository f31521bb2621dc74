package drivertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

func limits(can driver.Capabilities) bool { return can.Limit }

func (e *env) permit(name string, limit int) driver.Claim {
	c := e.writer(name)
	c.Limit = limit
	return c
}

// limitCases test several holders of a kind.
var limitCases = []testCase{
	{name: "AllWhoWaitForAPermitAreServed", crowd: true, needs: limits, run: func(e *env) {
		lockers := []*core.Locker{e.locker(e.Driver()), e.locker(e.Driver())}
		var wg sync.WaitGroup
		var inside, served atomic.Int32
		for i := range 40 {
			wg.Go(func() {
				err := lockers[i%2].Do(e.Context(), "name", func(context.Context) error {
					if n := inside.Add(1); n > 3 {
						e.Errorf("%d at once", n)
					}
					time.Sleep(time.Millisecond)
					inside.Add(-1)
					served.Add(1)
					return nil
				}, core.WithLimit(3), core.WithTTL(e.longTTL())) // many calls at once: an answer may take a while
				if err != nil {
					e.Error(err)
				}
			})
		}
		e.within(10*time.Second, "serving all", wg.Wait)
		if served.Load() != 40 {
			e.Errorf("%d served", served.Load())
		}
	}},
	{name: "AsManyHoldAsTheLimitAllows", needs: limits, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		permits := []driver.Claim{e.permit("name", 3), e.permit("name", 3), e.permit("name", 3)}
		for i, c := range permits {
			d := a
			if i == 1 {
				d = b
			}
			if g := e.grant(d, c); g.Fence != 0 || g.Limit != 0 {
				e.Errorf("grant says %+v", g)
			}
		}
		held := e.refusal(b, e.permit("name", 3), "one too many")
		if held.Label != "" || held.Exact || held.Limit != 0 || held.Remaining <= 0 || held.Remaining > time.Minute {
			e.Errorf("held says %+v", held)
		}
		e.refused(b, e.claim("name"), "an exclusive claim beside permits")
		e.noError(b.Release(e.Context(), permits[0])) // by whichever process
		e.grant(b, e.permit("name", 3))
		e.refused(a, e.permit("name", 3), "one too many again")
	}},
	{name: "KindsDoNotGoTogether", needs: func(can driver.Capabilities) bool { return can.Limit && can.Shared }, run: func(e *env) {
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
				e.noError(d.Release(e.Context(), c))
			}
		}
	}},
	{name: "EachPermitHasItsOwnTime", needs: limits, run: func(e *env) {
		d := e.Driver()
		short, long := e.brief(e.permit("name", 2)), e.permit("name", 2)
		e.grant(d, long)
		e.grant(d, short)
		if held := e.refusal(d, e.permit("name", 2), "one too many"); held.Remaining > e.ttl {
			e.Errorf("the first comes free in %s", held.Remaining)
		}
		time.Sleep(e.ttl * 12 / 10)
		errs := d.Renew(e.Context(), []driver.Claim{short, long})
		if !errors.Is(errs[0], driver.ErrNotOwner) || errs[1] != nil {
			e.Errorf("renewals: %v", errs)
		}
		e.grant(d, e.permit("name", 2)) // in the place of the one that died
		e.refused(d, e.permit("name", 2), "one too many again")
	}},
	{name: "APermitsAcquireIsIdempotentPerToken", needs: limits, run: func(e *env) {
		d, c := e.Driver(), e.permit("name", 2)
		e.grant(d, c)
		e.grant(d, c) // and takes no second one
		other := e.permit("name", 2)
		e.grant(d, other)
		e.grant(d, c) // also where there is no room for another one
		e.noError(d.Release(e.Context(), c))
		e.noError(d.Release(e.Context(), other))
		e.grant(d, e.claim("name"))
	}},
	{name: "WhereLimitsDifferTheSmallestCounts", needs: limits, run: func(e *env) {
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
		e.noError(d.Release(e.Context(), small))
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
	{name: "AWaiterGetsThePermitThatComesFree", needs: limits, run: queued(func(e *env, q driver.Queuer, d driver.Driver) {
		one, two := e.permit("name", 2), e.permit("name", 2)
		e.grant(d, one)
		e.grant(d, two)
		next := e.permit("name", 2)
		next.Place = token()
		told := make(chan error, 1)
		go func() { told <- q.Wait(e.Context(), next) }()
		time.Sleep(e.ttl / 10)
		e.noError(d.Release(e.Context(), two))
		e.within(time.Second, "the waiter hears of it", func() { e.noError(<-told) })
		e.refused(d, e.permit("name", 2), "one who has not waited")
		e.grant(q.(driver.Driver), next)
	})},
	{name: "AWaiterGetsThePermitOfOneThatDied", needs: limits, run: queued(func(e *env, q driver.Queuer, d driver.Driver) {
		one, dead, next := e.permit("name", 2), e.brief(e.permit("name", 2)), e.permit("name", 2)
		e.grant(d, one)
		e.grant(d, dead)
		e.within(2*e.ttl, "the waiter notices", func() { e.noError(q.Wait(e.Context(), next)) })
		e.grant(q.(driver.Driver), next)
	})},
	{name: "NeverMoreThanTheLimitUnderConcurrency", crowd: true, needs: limits, run: func(e *env) {
		var wg sync.WaitGroup
		var inside, grants atomic.Int32
		drivers := []driver.Driver{e.Driver(), e.Driver()}
		for i := range 8 {
			d := drivers[i%2]
			wg.Go(func() {
				for range 30 {
					c := e.permit("name", 3)
					c.TTL = 30 * time.Second
					if _, err := d.Acquire(e.Context(), c); err != nil {
						time.Sleep(time.Millisecond)
						continue
					}
					grants.Add(1)
					if n := inside.Add(1); n > 3 {
						e.Errorf("%d at once", n)
					}
					time.Sleep(50 * time.Microsecond)
					inside.Add(-1)
					if err := d.Release(e.Context(), c); err != nil {
						e.Errorf("release: %v", err)
					}
				}
			})
		}
		wg.Wait()
		if grants.Load() == 0 {
			e.Error("nobody got it")
		}
	}},
}
