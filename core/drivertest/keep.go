package drivertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

func keeps(can driver.Capabilities) bool { return can.Keep }

// keepCases test a name that stays taken after its release.
var keepCases = []testCase{
	{name: "AKeptNameIsTakenByNobodyUntilItsTime", needs: keeps, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		mine := e.claim("name")
		mine.Label = "who"
		e.grant(a, mine)
		keep := mine
		keep.Keep = e.ttl / 2
		released := time.Now()
		e.noError(a.Release(e.Context(), keep))
		refused := func(what string, c driver.Claim) {
			_, err := b.Acquire(e.Context(), c)
			if time.Since(released) >= keep.Keep { // on a busy machine: it may have come free
				return
			}
			held, ok := errors.AsType[*driver.Held](err)
			if !ok || held.Label != "who" || !held.Exact || held.Remaining <= 0 || held.Remaining > keep.Keep {
				e.Errorf("%s: %v %+v", what, err, held)
			}
		}
		refused("the token that owned it", mine)
		placed := e.claim("name")
		placed.Place = token()
		refused("one with a place in line", placed)
		var many sync.WaitGroup
		for range 32 {
			many.Go(func() { refused("one of many", e.claim("name")) })
		}
		many.Wait()
		if err := a.Renew(e.Context(), []driver.Claim{mine})[0]; !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("renewal: %v", err)
		}
		for _, c := range []driver.Claim{mine, keep} {
			if err := a.Release(e.Context(), c); !errors.Is(err, driver.ErrNotOwner) {
				e.Errorf("another release: %v", err)
			}
		}
		e.eventually("the name comes free", func() bool { _, err := b.Acquire(e.Context(), e.claim("name")); return err == nil })
		if after := time.Since(released); after < keep.Keep {
			e.Errorf("free after %s, not %s", after, keep.Keep)
		}
	}},
	{name: "ANameIsKeptForLongerThanItsTTL", needs: keeps, run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		e.grant(d, c)
		c.Keep = 2 * e.ttl
		e.noError(d.Release(e.Context(), c))
		time.Sleep(e.ttl * 3 / 2)
		if _, err := d.Acquire(e.Context(), e.claim("name")); err == nil {
			e.Error("granted")
		}
	}},
	{name: "AnOwnersNameIsNotExactlyHeld", needs: keeps, run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		e.grant(d, c)
		_, err := d.Acquire(e.Context(), e.claim("name"))
		if held, ok := errors.AsType[*driver.Held](err); !ok || held.Exact {
			e.Errorf("%v %+v", err, held)
		}
	}},
	{name: "AKeptNameHasItsMarker", needs: func(can driver.Capabilities) bool { return can.Keep && can.Dedup }, run: func(e *env) {
		d, c := e.Driver(), dedupClaim(e, "name", "pay", time.Hour)
		e.grant(d, c)
		c.Mark, c.Keep = true, e.ttl/2
		e.noError(d.Release(e.Context(), c))
		_, err := d.Acquire(e.Context(), dedupClaim(e, "name", "pay", time.Hour))
		if done, ok := errors.AsType[*driver.Duplicate](err); !ok || done.Label != "who" {
			e.Errorf("acquire: %v", err)
		}
	}},
	{name: "AWaiterGetsAKeptNameAtItsTime", needs: keeps, run: func(e *env) {
		locks, other := e.locker(e.Driver()), e.locker(e.Driver())
		began := time.Now() // the grant comes later
		x, err := locks.Acquire(e.Context(), "name", core.WithMinHold(e.ttl))
		e.noError(err)
		e.noError(x.Release(e.Context()))
		e.within(e.ttl+e.ttl/100, "the wait for a kept name", func() {
			y, err := other.Acquire(e.Context(), "name")
			e.noError(err)
			if after := time.Since(began); after < e.ttl {
				e.Errorf("granted after %s, not %s", after, e.ttl)
			}
			e.noError(y.Release(e.Context()))
		})
	}},
	{name: "AJobOfManyNodesRunsOnceInItsTime", needs: keeps, run: func(e *env) {
		ran := 0
		for range 5 {
			err := e.locker(e.Driver()).Do(e.Context(), "name", func(context.Context) error { ran++; return nil },
				core.WithMinHold(time.Minute), core.WithWait(0))
			if err != nil && !errors.Is(err, core.ErrHeld) {
				e.Error(err)
			}
		}
		if ran != 1 {
			e.Errorf("%d runs", ran)
		}
	}},
}
