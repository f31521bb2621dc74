package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// yielder is a backend that yields.
type yielder interface {
	driver.Driver
	driver.Yielder
}

// yieldCases are for backends that are a driver.Yielder.
var yieldCases = []testCase{
	{name: "AYieldWithNobodyInLineGoesOn", run: yielding(func(e *env, process func() yielder) {
		for _, fences := range []int{0, driver.MaxTurns} {
			y, theirs := process(), process()
			old, next := e.claim("name"), e.place()
			next.Fences = fences
			before := e.grant(y, old)
			g, errNext, errOld := y.Yield(e.Context(), old, next)
			e.noError(errNext)
			e.noError(errOld)
			if before.Fence > 0 && g.Fence < before.Fence+uint64(max(1, before.Fences)) {
				e.Errorf("fence %d after %d of them from %d on", g.Fence, before.Fences, before.Fence)
			}
			if g.Fences > max(1, fences) {
				e.Errorf("%d fences for %d", g.Fences, fences)
			}
			if err := y.Renew(e.Context(), []driver.Claim{old})[0]; !errors.Is(err, driver.ErrNotOwner) {
				e.Errorf("the old token: %v", err)
			}
			if _, err := theirs.Acquire(e.Context(), e.claim("name")); err == nil {
				e.Error("two holders")
			}
			e.noError(y.Renew(e.Context(), []driver.Claim{next})[0])
			e.noError(y.Release(e.Context(), next))
			e.free() // it stands in no line
		}
	})},
	{name: "AYieldGivesTheFullTTL", run: yielding(func(e *env, process func() yielder) {
		y := process()
		old, next := e.claim("name"), e.claim("name")
		next.Place = token()
		e.grant(y, old)
		time.Sleep(e.ttl / 2)
		_, errNext, errOld := y.Yield(e.Context(), old, next)
		e.noError(errNext)
		e.noError(errOld)
		time.Sleep(e.ttl * 6 / 10)
		e.noError(y.Renew(e.Context(), []driver.Claim{next})[0])
	})},
	{name: "AYieldWithItsOwnPlaceInLineGoesOn", run: yielding(func(e *env, process func() yielder) {
		y := process()
		old, next := e.claim("name"), e.place()
		e.grant(y, old)
		e.lineUp(y, next)
		_, errNext, errOld := y.Yield(e.Context(), old, next)
		e.noError(errNext)
		e.noError(errOld)
		e.noError(y.Release(e.Context(), next))
		e.free()
	})},
	{name: "AYieldBesideOthersIsTheFirstOnesTurn", run: yielding(func(e *env, process func() yielder) {
		y, first, second := process(), process(), process()
		old, a, b, next := e.place(), e.place(), e.place(), e.place()
		e.grant(y, old)
		e.lineUp(first, a)
		e.lineUp(second, b)
		served := make(chan struct{})
		go func() {
			defer close(served)
			e.serve(first, a)
		}()
		time.Sleep(e.ttl / 20)
		e.within(e.ttl/100, "the first one's turn", func() {
			_, errNext, errOld := y.Yield(e.Context(), old, next)
			if _, held := errors.AsType[*driver.Held](errNext); !held || errOld != nil {
				e.Errorf("yield: %v, %v", errNext, errOld)
			}
			<-served
		})
		if err := y.Renew(e.Context(), []driver.Claim{old})[0]; !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("the old token: %v", err)
		}
		e.noError(first.Release(e.Context(), a))
		if _, err := y.Acquire(e.Context(), next); err == nil { // it stands at the end
			e.Error("who has yielded is served before the others")
		}
		e.grant(second, b)
		e.noError(second.Release(e.Context(), b))
		if _, err := first.Acquire(e.Context(), e.claim("name")); err == nil {
			e.Error("who has yielded is not in line")
		}
		e.grant(y, next)
		e.noError(y.Release(e.Context(), next))
		e.free()
	})},
	{name: "OnlyTheOwnerYields", run: yielding(func(e *env, process func() yielder) {
		y, theirs := process(), process()
		never, next, held := e.claim("name"), e.place(), e.place()
		refused := func(what string) {
			e.Helper()
			_, errNext, errOld := y.Yield(e.Context(), never, next)
			if !errors.Is(errNext, driver.ErrNotSent) || !errors.Is(errOld, driver.ErrNotOwner) {
				e.Errorf("%s: %v, %v", what, errNext, errOld)
			}
		}
		refused("a free name")
		e.free()
		e.grant(theirs, held)
		refused("somebody else's name")
		e.noError(theirs.Renew(e.Context(), []driver.Claim{held})[0])
		e.noError(theirs.Release(e.Context(), held))
		e.free() // nobody was lined up
	})},
	{name: "AYieldWhoseContextHasEndedDoesNothing", run: yielding(func(e *env, process func() yielder) {
		y := process()
		old := e.claim("name")
		e.grant(y, old)
		_, errNext, errOld := y.Yield(done(), old, e.place())
		if !errors.Is(errNext, driver.ErrNotSent) || !errors.Is(errOld, driver.ErrNotSent) {
			e.Errorf("yield: %v, %v", errNext, errOld)
		}
		e.noError(y.Renew(e.Context(), []driver.Claim{old})[0])
	})},
	{name: "ADeadPlaceKeepsNobodyFromYielding", run: yielding(func(e *env, process func() yielder) {
		y, dead := process(), process()
		old, next, a := e.place(), e.place(), e.place()
		old.TTL = time.Minute
		e.grant(y, old)
		e.lineUp(dead, a)
		time.Sleep(driver.PlaceLife(a.TTL) + e.lineUpFor())
		_, errNext, errOld := y.Yield(e.Context(), old, next)
		e.noError(errNext)
		e.noError(errOld)
	})},
	{name: "FencesGrowThroughYields", needs: blocks, run: yielding(func(e *env, process func() yielder) {
		y, theirs := process(), process()
		old, other := e.place(), e.place()
		old.Fences = driver.MaxTurns
		last := uint64(0)
		take := func(g driver.Grant, most int) {
			e.Helper()
			if g.Fence <= last || g.Fences > most {
				e.Errorf("%d fences from %d on, after %d", g.Fences, g.Fence, last)
			}
			last = g.Fence + uint64(max(1, g.Fences)) - 1
		}
		take(e.grant(y, old), driver.MaxTurns)
		for range 20 {
			next := e.place()
			next.Fences = driver.MaxTurns
			g, errNext, errOld := y.Yield(e.Context(), old, next)
			e.noError(errNext)
			e.noError(errOld)
			take(g, driver.MaxTurns)
			old = next
		}
		e.lineUp(theirs, other)
		next := e.place()
		next.Fences, other.Fences = driver.MaxTurns, driver.MaxTurns
		if _, errNext, _ := y.Yield(e.Context(), old, next); errNext == nil {
			e.Error("others stand in line")
		}
		take(e.grant(theirs, other), driver.TurnsBesideOthers)
		e.noError(theirs.Release(e.Context(), other))
		take(e.grant(y, next), driver.MaxTurns)
	})},
}

func yielding(run func(e *env, process func() yielder)) func(*env) {
	return func(e *env) {
		if _, ok := e.probe.(yielder); !ok {
			e.lacks("no yield in one step")
		}
		lined(func(e *env, process func() queuer) {
			run(e, func() yielder {
				y, _ := process().(yielder)
				return y
			})
		})(e)
	}
}
