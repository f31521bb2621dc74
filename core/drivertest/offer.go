package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// offerer is a backend that can grant a name to a place that waits.
type offerer interface {
	driver.Driver
	driver.Offerer
}

// offerCases are for backends that are a driver.Offerer.
var offerCases = []testCase{
	{name: "WhoeverFreesTheNameGrantsWhatTheFirstOffers", run: offering(func(e *env, process func() offerer) {
		for how, free := range e.waysToFree() {
			holder, first, second := process(), process(), process()
			held, a, b := e.claim("name"), e.place(), e.place()
			held.TTL = e.longTTL()
			before := e.grant(holder, held)
			got := e.offer(first, a, 1)
			e.lineUp(second, b)
			free(holder, held)
			g := got(true, how)
			if before.Fence > 0 && g.Fence <= before.Fence {
				e.Errorf("%s: fence %d after %d", how, g.Fence, before.Fence)
			}
			e.owns(first, a, how)
			e.refused(second, b, how)
			e.noError(first.Release(e.Context(), a))
			e.grant(second, b) // a has left the queue
			e.noError(second.Release(e.Context(), b))
			e.free()
		}
	})},
	{name: "WhoeverFindsTheNameFreeGrantsWhatTheFirstOffers", run: offering(func(e *env, process func() offerer) {
		holder, first, second := process(), process(), process()
		held, a, b := e.claim("name"), e.place(), e.place()
		held.TTL = driver.PlaceLife(a.TTL) * 2 / 5 // it expires, and nobody says so
		e.grant(holder, held)
		offered := time.Now()
		e.leftOffer(first, a, 1)
		verified := held
		verified.TTL = 0
		e.eventually("it has expired", func() bool { return holder.Renew(e.Context(), []driver.Claim{verified})[0] != nil })
		e.refused(second, b, "a second place")
		if time.Since(offered) < driver.PlaceLife(a.TTL)/2 { // on slow connections, half of its life may be over
			e.owns(first, a, "found free")
		}
	})},
	{name: "AGrantInLineLastsAsLongAsThePlaceWouldHave", run: offering(func(e *env, process func() offerer) {
		holder, first, other := process(), process(), process()
		held, a, b := e.claim("name"), e.place(), e.place()
		held.TTL = e.longTTL()
		e.grant(holder, held)
		began := time.Now()
		got := e.offer(first, a, 1)
		e.noError(holder.Release(e.Context(), held))
		got(true, "released")
		e.serve(other, b) // nobody renews
		if lasted := time.Since(began); lasted < driver.PlaceLife(a.TTL) || lasted > held.TTL+driver.PlaceLife(a.TTL) {
			e.Errorf("the grant has lasted for %s, from when it was offered", lasted)
		}
	})},
	{name: "AnOfferThatIsWithdrawnIsNeverGrantedAndKeepsItsPlace", run: offering(func(e *env, process func() offerer) {
		holder, first, second := process(), process(), process()
		held, a, b := e.place(), e.place(), e.place()
		e.grant(holder, held)
		e.leftOffer(first, a, 3)
		e.lineUp(second, b)
		e.notOwner(first.Release(e.Context(), withOffer(a, 3)), "a withdrawal")
		e.leftOffer(first, a, 2) // executed later than the withdrawal
		e.noError(holder.Release(e.Context(), held))
		e.notOwner(first.Renew(e.Context(), []driver.Claim{a})[0], "after a withdrawal")
		e.refused(second, b, "the place is still the first")
		e.grant(first, a)
	})},
	{name: "AnOlderOfferNeverReplacesANewerOne", run: offering(func(e *env, process func() offerer) {
		holder, first := process(), process()
		held, old := e.place(), e.place()
		next := old
		next.Token = token()
		e.grant(holder, held)
		e.leftOffer(first, next, 2)
		e.leftOffer(first, old, 1)
		e.notOwner(first.Release(e.Context(), withOffer(old, 1)), "a withdrawal of the older one")
		e.noError(holder.Release(e.Context(), held))
		e.notOwner(first.Renew(e.Context(), []driver.Claim{old})[0], "the older one")
		e.owns(first, next, "the newer one")
	})},
	{name: "AWaitWithoutAnOfferLeavesTheOfferThatIsThere", run: offering(func(e *env, process func() offerer) {
		holder, first := process(), process()
		held, offers := e.place(), e.place()
		waits := offers
		waits.Token, waits.Label = token(), "another caller of the process"
		e.grant(holder, held)
		e.leftOffer(first, offers, 1)
		e.lineUp(first, waits)
		e.noError(holder.Release(e.Context(), held))
		e.owns(first, offers, "the offer")
	})},
	{name: "AGrantThatNobodyHearsOfIsFoundOrFreed", run: offering(func(e *env, process func() offerer) {
		holder, first := process(), process()
		for what, settle := range map[string]func(a driver.Claim){
			"an acquire finds it":   func(a driver.Claim) { e.grant(first, a) },
			"a wait finds it":       func(a driver.Claim) { e.noError(first.Wait(e.Context(), a)) },
			"a new offer finds it":  func(a driver.Claim) { e.offer(first, a, 2)(false, "a new offer") },
			"a withdrawal frees it": func(a driver.Claim) { e.noError(first.Release(e.Context(), withOffer(a, 1))) },
			"leaving frees it":      func(a driver.Claim) { e.noError(first.Release(e.Context(), a)) },
		} {
			held, a := e.place(), e.place()
			e.grant(holder, held)
			e.leftOffer(first, a, 1)
			e.noError(holder.Release(e.Context(), held))
			settle(a)
			if err := first.Release(e.Context(), a); err != nil {
				e.notOwner(err, what)
			}
			e.free()
		}
	})},
	{name: "APlaceThatIsLeftOrDeadIsGrantedNothing", run: offering(func(e *env, process func() offerer) {
		holder, first := process(), process()
		held, a := e.place(), e.place()
		held.TTL = time.Minute
		e.grant(holder, held)
		e.leftOffer(first, a, 1)
		e.notOwner(first.Release(e.Context(), a), "leaving")
		e.noError(holder.Release(e.Context(), held))
		e.notOwner(first.Renew(e.Context(), []driver.Claim{a})[0], "a place that was left")
		e.free()
		e.grant(holder, held)
		b := e.place()
		e.leftOffer(first, b, 1)
		time.Sleep(driver.PlaceLife(b.TTL) + e.lineUpFor())
		e.noError(holder.Release(e.Context(), held))
		e.notOwner(first.Renew(e.Context(), []driver.Claim{b})[0], "a dead place")
		e.free()
	})},
	{name: "APlaceWithLittleLifeLeftIsOnlyTold", run: offering(func(e *env, process func() offerer) {
		holder, first := process(), process()
		held, a := e.place(), e.place()
		held.TTL = time.Minute
		e.grant(holder, held)
		e.leftOffer(first, a, 1)
		time.Sleep(driver.PlaceLife(a.TTL) * 6 / 10)
		e.noError(holder.Release(e.Context(), held))
		e.notOwner(first.Renew(e.Context(), []driver.Claim{a})[0], "a grant")
		e.grant(first, a)
	})},
	{name: "BlocksOfFencesOfGrantsInLineNeverMeet", needs: blocks, run: offering(func(e *env, process func() offerer) {
		holder, first, second := process(), process(), process()
		held, a, b := e.place(), e.place(), e.place()
		held.Fences, a.Fences, b.Fences = driver.MaxTurns, driver.MaxTurns, driver.MaxTurns
		last := uint64(0)
		take := func(what string, g driver.Grant, most int) {
			e.Helper()
			if g.Fence <= last || g.Fences < 2 || g.Fences > most {
				e.Errorf("%s: %d fences from %d on, after %d", what, g.Fences, g.Fence, last)
			}
			last = g.Fence + uint64(max(1, g.Fences)) - 1
		}
		take("the holder", e.grant(holder, held), driver.MaxTurns)
		got := e.offer(first, a, 1)
		next := e.offer(second, b, 1)
		e.noError(holder.Release(e.Context(), held))
		take("beside others", got(true, "the first"), driver.TurnsBesideOthers)
		e.noError(first.Release(e.Context(), a))
		take("alone", next(true, "the second"), driver.MaxTurns)
	})},
}

func offering(run func(e *env, process func() offerer)) func(*env) {
	return func(e *env) {
		if _, ok := e.probe.(offerer); !ok {
			e.lacks("no grant in line")
		}
		lined(func(e *env, process func() queuer) {
			run(e, func() offerer {
				o, _ := process().(offerer)
				return o
			})
		})(e)
	}
}

func withOffer(c driver.Claim, number uint64) driver.Claim {
	c.Offer = number
	return c
}

// waysToFree are what makes a name free for the next place.
func (e *env) waysToFree() map[string]func(d offerer, held driver.Claim) {
	ways := map[string]func(d offerer, held driver.Claim){
		"a release": func(d offerer, held driver.Claim) { e.noError(d.Release(e.Context(), held)) },
		"a release that leaves a place": func(d offerer, held driver.Claim) {
			held.Place = token()
			e.noError(d.Release(e.Context(), held))
		},
		"two releases at once": func(d offerer, held driver.Claim) { // which may share a round trip
			other := e.claim("another")
			e.grant(d, other)
			freed := make(chan error, 1)
			go func() { freed <- d.Release(e.Context(), other) }()
			e.noError(d.Release(e.Context(), held))
			e.noError(<-freed)
		},
	}
	if i, ok := e.Driver().(inspector); ok {
		ways["an eviction"] = func(_ offerer, held driver.Claim) {
			info, err := i.Inspect(e.Context(), held.Name)
			e.noError(err)
			e.noError(i.Evict(e.Context(), held.Name, info.Handle))
		}
	}
	return ways
}

// owns fails the case unless c's token owns its name.
func (e *env) owns(d driver.Driver, c driver.Claim, what string) {
	e.Helper()
	if err := d.Renew(e.Context(), []driver.Claim{c})[0]; err != nil {
		e.Fatalf("%s: not the owner: %v", what, err)
	}
}

func (e *env) notOwner(err error, what string) {
	e.Helper()
	if !errors.Is(err, driver.ErrNotOwner) {
		e.Fatalf("%s: %v", what, err)
	}
}
