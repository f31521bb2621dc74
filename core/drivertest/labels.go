package drivertest

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// labelCases are for backends that are a driver.Inspector: who waits, and who shares a name, since when,
// and by which label.
var labelCases = []testCase{
	{name: "EachWaiterIsShownWithItsLabelAndSinceWhen", run: looking(func(e *env, i inspector, process func() queuer) {
		holder, can := process(), i.Capabilities()
		held := e.labelled("holder")
		held.TTL = time.Minute
		e.grant(holder, held)
		waiters := []driver.Claim{e.labelled("exclusive")}
		if can.Shared {
			c := e.labelled("shared")
			c.Shared = true
			waiters = append(waiters, c)
		}
		if can.Limit {
			c := e.labelled("limited")
			c.Limit = 3
			waiters = append(waiters, c)
		}
		if can.Dedup {
			c := e.labelled("with a marker")
			c.Scope, c.Dedup = "pay", time.Minute
			waiters = append(waiters, c)
		}
		for n, c := range waiters {
			began := time.Now()
			e.lineUp(process(), c)
			info := e.look(i)
			if len(info.Line) != n+1 {
				e.Fatalf("%d are in line: %+v", n+1, info)
			}
			if n == 0 {
				e.keepsLabels(info)
			}
			if last := info.Line[n]; last.Label != c.Label || !last.Alive || last.Waited < 0 || last.Waited > time.Since(began)+slack(e) {
				e.Errorf("%q: %+v", c.Label, last)
			}
		}
		if o, ok := process().(offerer); ok {
			c := e.labelled("by an offer")
			e.leftOffer(o, c, 1)
			waiters = append(waiters, c)
		}
		info := e.look(i)
		for n, c := range waiters {
			if len(info.Line) != len(waiters) || info.Line[n].Label != c.Label || n > 0 && info.Line[n].Waited > info.Line[n-1].Waited {
				e.Errorf("%d: %+v", n, info.Line)
			}
		}
		e.hides(info, append(waiters, held)...)
	})},
	{name: "AWaitersLabelIsThatOfTheCallerThatWaitsNow", run: looking(func(e *env, i inspector, process func() queuer) {
		holder, q := process(), process()
		held := e.labelled("holder")
		held.TTL = time.Minute
		e.grant(holder, held)
		place := e.place()
		caller := func(what string) driver.Claim { // each is another one of the same process
			c := e.labelled(what)
			c.Place = place.Place
			return c
		}
		shown := func(what, want string) {
			e.Helper()
			if info := e.look(i); len(info.Line) != 1 || info.Line[0].Label != want {
				e.Errorf("%s: %+v instead of %q", what, info.Line, want)
			}
		}
		first, second := caller("first"), caller("second")
		e.lineUp(q, first)
		e.keepsLabels(e.look(i))
		shown("the first caller", first.Label)
		e.lineUp(q, second)
		shown("the second caller", second.Label)
		if o, ok := q.(offerer); ok {
			third, fourth := caller("third"), caller("fourth")
			e.leftOffer(o, third, 3)
			shown("who offers", third.Label)
			e.notOwner(o.Release(e.Context(), withOffer(third, 3)), "a withdrawal")
			e.lineUp(q, fourth)
			shown("who follows on it", fourth.Label)
			late := caller("late")
			e.leftOffer(o, late, 2) // it was withdrawn before
			e.noError(holder.Release(e.Context(), held))
			e.notOwner(q.Renew(e.Context(), []driver.Claim{late})[0], "an offer that comes late")
			e.grant(q, fourth)
			e.noError(q.Release(e.Context(), fourth))
			e.grant(holder, e.writer("name"))
		}
		none := caller("")
		none.Label = ""
		e.lineUp(q, none)
		shown("who has none", "")
	})},
	{name: "AWaitersLabelGoesWithItsPlace", run: looking(func(e *env, i inspector, process func() queuer) {
		holder, first, second := process(), process(), process()
		held, left, dead := e.labelled("holder"), e.labelled("left"), e.labelled("dead")
		held.TTL = time.Minute
		e.grant(holder, held)
		e.lineUp(first, left)
		e.notOwner(first.Release(e.Context(), left), "leaving")
		if info := e.look(i); len(info.Line) > 0 {
			e.Errorf("it has left: %+v", info.Line)
		}
		e.lineUp(first, dead) // and is never heard of again
		e.keepsLabels(e.look(i))
		e.eventually("it is dead", func() bool { line := e.look(i).Line; return len(line) == 0 || !line[0].Alive })
		if info := e.look(i); len(info.Line) > 1 || len(info.Line) == 1 && info.Line[0].Label != dead.Label {
			e.Errorf("it is dead: %+v", info.Line)
		}
		e.noError(holder.Release(e.Context(), held))
		next := e.writer("name")
		e.eventually("the dead place is dropped", func() bool { _, err := second.Acquire(e.Context(), next); return err == nil })
		again := dead
		again.Token, again.Label = token(), ""
		e.lineUp(first, again)
		if info := e.look(i); len(info.Line) != 1 || info.Line[0].Label != "" || !info.Line[0].Alive {
			e.Errorf("it has come again: %+v", info.Line)
		}
	})},
	{name: "EachReaderIsShownWithItsLabelAndSinceWhen", needs: shares, run: inspecting(func(e *env, i inspector) {
		e.holders(i, func(what string) driver.Claim {
			c := e.labelled(what)
			c.Shared, c.Place = true, ""
			return c
		})
	})},
	{name: "EachOfALimitedNumberIsShownWithItsLabelAndSinceWhen", needs: limits, run: inspecting(func(e *env, i inspector) {
		e.holders(i, func(what string) driver.Claim {
			c := e.labelled(what)
			c.Limit, c.Place = 3, ""
			return c
		})
	})},
}

// holders checks what is shown of claims that share "name".
func (e *env) holders(i inspector, claim func(what string) driver.Claim) {
	e.Helper()
	first, second, brief, none := claim("first"), claim("second"), claim("brief"), claim("none")
	brief.TTL, none.Label = e.ttl/2, ""
	began := time.Now()
	e.grant(i, first)
	if several := e.look(i).Holders; len(several) == 1 && several[0].Label == "" {
		e.lacks("it keeps neither label nor since when of a holder that shares a name")
	}
	e.sharers(i, "alone", first)
	since := func(heldFor, least time.Duration) bool { return e.Timeless || heldFor >= least }
	e.eventually("it has held it for a while", func() bool { return since(e.look(i).HeldFor, e.ttl/10) })
	e.grant(i, second)
	before := e.sharers(i, "two", first, second)
	least := before[second.Label].HeldFor
	for range 3 {
		least += e.ttl / 10
		e.eventually("it has held it for a while", func() bool { return since(e.sharers(i, "two", first, second)[second.Label].HeldFor, least) })
		e.grant(i, first) // asked for again, since the answer was lost
		for _, err := range i.Renew(e.Context(), []driver.Claim{first, second}) {
			e.noError(err)
		}
	}
	after := e.sharers(i, "renewed", first, second)
	for _, seen := range []map[string]driver.HolderInfo{before, after} {
		if one, two := seen[first.Label].HeldFor, seen[second.Label].HeldFor; !since(one, two+e.ttl/20) || one > time.Since(began)+slack(e) {
			e.Errorf("the first has held it for %s, the second for %s", one, two)
		}
	}
	if grown := after[second.Label].HeldFor - before[second.Label].HeldFor; !since(grown, 3*e.ttl/10) {
		e.Errorf("%s more after %s", grown, 3*e.ttl/10)
	}
	e.noError(i.Release(e.Context(), first))
	e.grant(i, brief)
	e.eventually("the brief one is over", func() bool {
		e.noError(i.Renew(e.Context(), []driver.Claim{second})[0])
		return len(e.look(i).Holders) == 1
	})
	e.sharers(i, "the brief one is over", second)
	e.grant(i, none)
	e.sharers(i, "one has no label", second, none)
	e.noError(i.Release(e.Context(), second))
	e.noError(i.Release(e.Context(), none))
	if info := e.look(i); info.Held || len(info.Holders) > 0 {
		e.Errorf("all are gone: %+v", info)
	}
}

// sharers returns who is shown to share "name", by label. It fails the case unless that is who should.
func (e *env) sharers(i inspector, what string, claims ...driver.Claim) map[string]driver.HolderInfo {
	e.Helper()
	info := e.look(i)
	all := make(map[string]driver.HolderInfo)
	for _, h := range info.Holders {
		all[h.Label] = h
		if h.HeldFor > info.HeldFor {
			e.Errorf("%s: one holds it longer than all: %+v", what, info)
		}
	}
	for _, c := range claims {
		if _, ok := all[c.Label]; !ok || len(info.Holders) != len(claims) {
			e.Fatalf("%s: %q is not one of the %d that are shown: %+v", what, c.Label, len(claims), info)
		}
	}
	e.hides(info, claims...)
	return all
}

// labelled is a claim of "name" with a place, and with a label like those by default.
func (e *env) labelled(what string) driver.Claim {
	c := e.place()
	c.Label = "web-7:4711 POST /orders/:id/pay 1 2 ü " + what
	return c
}

// looking runs a case about waiters, with backends of separate processes, and one that looks.
func looking(run func(e *env, i inspector, process func() queuer)) func(*env) {
	return inspecting(func(e *env, i inspector) {
		lined(func(e *env, process func() queuer) { run(e, i, process) })(e)
	})
}

// hides fails the case if info has a token or a place of the claims.
func (e *env) hides(info driver.LeaseInfo, claims ...driver.Claim) {
	e.Helper()
	text := fmt.Sprintf("%+v", info)
	for _, c := range claims {
		if strings.Contains(text, c.Token) || c.Place != "" && strings.Contains(text, c.Place) {
			e.Errorf("a secret of %q is shown: %s", c.Label, text)
		}
	}
}

// keepsLabels ends the case where the backend shows no label of the waiter that is in line.
func (e *env) keepsLabels(info driver.LeaseInfo) {
	e.Helper()
	if len(info.Line) == 0 {
		e.Fatal("nobody is in line")
	}
	if info.Line[0].Label == "" {
		e.lacks("it keeps no label of a waiter")
	}
}
