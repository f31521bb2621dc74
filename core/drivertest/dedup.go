package drivertest

import (
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// marked makes a claim that looks for the marker of scope, and leaves it if it is released so.
func (e *env) marked(name, scope string) driver.Claim {
	c := e.long(name)
	c.Label, c.Scope, c.Dedup = "who", scope, time.Hour
	return c
}

// bare is c for a release that leaves nothing.
func bare(c driver.Claim) driver.Claim {
	c.Dedup, c.Keep, c.Handoff = 0, 0, ""
	return c
}

// duplicate fails the case unless c is refused by a marker.
func (e *env) duplicate(d driver.Driver, c driver.Claim, what string) {
	e.Helper()
	_, err := d.Acquire(e.ctx, c)
	if mark, ok := errors.AsType[*driver.Duplicate](err); !ok || mark.Label != "who" {
		e.Fatalf("%s: no duplicate: %v", what, err)
	}
}

// dedupCases test dedup markers.
var dedupCases = []testCase{
	{name: "AMarkerStopsThoseWhoAskForIt", needs: []need{dedups}, run: func(e *env) {
		d, c := e.Driver(), e.marked("name", "pay")
		e.grant(d, c)
		e.release(d, c)
		same := e.marked("name", "pay")
		e.duplicate(e.Driver(), same, "the same")
		for what, c := range map[string]driver.Claim{
			"another scope": e.marked("name", "refund"),
			"no scope":      e.marked("name", ""),
			"another name":  e.marked("nam", "epay"),
			"no dedup":      e.claim("name"),
		} {
			if _, err := d.Acquire(e.ctx, c); err != nil {
				e.Errorf("%s: %v", what, err)
			}
			e.release(d, bare(c))
		}
		e.duplicate(d, same, "after releases without a marker")
	}},
	{name: "AMarkerGoesWithItsWindow", needs: []need{dedups}, run: func(e *env) {
		d, c := e.Driver(), e.marked("name", "pay")
		e.grant(d, c)
		c.Dedup = e.ttl
		began := time.Now()
		e.release(d, c)
		e.duplicate(d, e.marked("name", "pay"), "within its window")
		e.eventually("the marker expires", func() bool { _, err := d.Acquire(e.ctx, e.marked("name", "pay")); return err == nil })
		if lived := time.Since(began); lived < e.ttl {
			e.Errorf("it has stood for %s", lived)
		}
	}},
	{name: "OnlyTheOwnerCompletes", needs: []need{dedups}, run: func(e *env) {
		d, c, forged := e.Driver(), e.marked("name", "pay"), e.marked("name", "pay")
		e.leaves(d, forged, "nobody owns it")
		e.grant(d, c)
		e.leaves(d, forged, "another token")
		e.release(d, bare(c))
		e.grant(d, e.marked("name", "pay"))
	}},
	{name: "AWaitForWorkThatIsDoneSaysSoAtOnce", needs: []need{dedups}, run: func(e *env) {
		d, c := e.Driver(), e.marked("name", "pay")
		e.grant(d, c)
		e.release(d, c)
		e.grant(d, e.long("name"))
		next := e.marked("name", "pay")
		e.within(0, "the wait", func() {
			_, err := d.Wait(e.ctx, next)
			if mark, ok := errors.AsType[*driver.Duplicate](err); !ok || mark.Label != "who" {
				e.Errorf("%v", err)
			}
		})
		e.leaves(d, next, "leaving")
	}},
	{name: "AMarkerIsLeftHoweverTheNameWasGot", needs: []need{dedups}, run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		got := func(_ driver.Grant, err error) { e.noError(err) }
		waiting := func(c driver.Claim, get func()) { // one who has stood in the queue
			held := e.lasting(c.Name)
			e.grant(other, held)
			e.queue(d, c, c.Name)
			e.release(other, held)
			get()
		}
		ways := map[string]func(c driver.Claim){
			"an acquire":              func(c driver.Claim) { got(e.again(c, d.Acquire)) },
			"a wait":                  func(c driver.Claim) { got(e.wait(d, c)) },
			"a plain wait":            func(c driver.Claim) { got(e.wait(d, bare(c))) },
			"an acquire after a wait": func(c driver.Claim) { waiting(c, func() { got(e.again(c, d.Acquire)) }) },
			"a wait after a wait":     func(c driver.Claim) { waiting(c, func() { got(e.wait(d, c)) }) },
			"a direct grant": func(c driver.Claim) {
				held := e.lasting(c.Name)
				e.grant(other, held)
				w := e.waits(d, bare(c))
				e.release(other, held)
				w.granted(e.hearing(c)+driver.Recheck(c.TTL), c.Name)
			},
		}
		for what, get := range ways {
			c := e.marked(strings.ReplaceAll(what, " ", "-"), "pay")
			get(c)
			e.release(d, c)
			e.duplicate(other, e.marked(c.Name, "pay"), what)
			e.free(c.Name)
		}
	}},
	{name: "AMarkerOutlivesTheNextHolders", needs: []need{dedups}, run: func(e *env) {
		d, c := e.Driver(), e.marked("name", "pay")
		e.grant(d, c)
		e.release(d, c)
		for range 3 {
			e.free("name")
		}
		e.sleep(e.ttl * 12 / 10)
		e.duplicate(d, e.marked("name", "pay"), "after others")
	}},
}
