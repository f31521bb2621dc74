package drivertest

import (
	"errors"
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
	// A marker stops those who ask for its scope at its name, and nobody else. It stays for its window, not longer, while others have
	// the name, and release it without a marker of their own.
	{name: "AMarkerStopsThoseWhoAskForIt", needs: []need{dedups}, run: func(e *env) {
		d, c, brief := e.Driver(), e.marked("name", "pay"), e.marked("brief", "pay")
		e.grant(d, c)
		e.release(d, c)
		e.grant(d, brief)
		brief.Dedup = e.ttl
		began := time.Now()
		e.release(d, brief)
		e.duplicate(d, e.marked("brief", "pay"), "within its window")
		same := e.marked("name", "pay")
		e.duplicate(e.Driver(), same, "the same")
		for what, c := range map[string]driver.Claim{
			"another scope": e.marked("name", "refund"),
			"capitals":      e.marked("name", "PAY"),
			"a space":       e.marked("name", "pay "),
			"an accent":     e.marked("name", "pày"),
			"no scope":      e.marked("name", ""),
			"another name":  e.marked("nam", "epay"),
			"no dedup":      e.claim("name"),
		} {
			if _, err := d.Acquire(e.ctx, c); err != nil {
				e.Errorf("%s: %v", what, err)
			}
			e.release(d, bare(c))
		}
		e.eventually("the marker expires", func() bool { _, err := d.Acquire(e.ctx, e.marked("brief", "pay")); return err == nil })
		if lived := time.Since(began); lived < e.ttl {
			e.Errorf("it has stood for %s", lived)
		}
		e.sleep(e.ttl / 5)
		e.duplicate(d, same, "after others")
	}},
	// Only a release by the owner leaves a marker.
	{name: "OnlyTheOwnerCompletes", needs: []need{dedups}, run: func(e *env) {
		d, c, forged := e.Driver(), e.marked("name", "pay"), e.marked("name", "pay")
		e.leaves(d, forged, "nobody owns it")
		e.grant(d, c)
		e.leaves(d, forged, "another token")
		e.release(d, bare(c))
		e.grant(d, e.marked("name", "pay"))
	}},
	// A Wait for work that is done says so at once, beside whoever has the name. So it does if the holder leaves the marker while
	// it waits; then it is not in the queue, and the next one is served.
	{name: "AWaitForWorkThatIsDoneSaysSoAtOnce", needs: []need{dedups}, run: func(e *env) {
		d, holder, c := e.Driver(), e.Driver(), e.marked("name", "pay")
		told := func(d driver.Driver, c driver.Claim, err error) {
			if mark, ok := errors.AsType[*driver.Duplicate](err); !ok || mark.Label != "who" {
				e.Errorf("%v", err)
			}
			e.leaves(d, c, "leaving")
		}
		e.grant(d, c)
		e.release(d, c)
		e.holds(holder, "name")
		next := e.marked("name", "pay")
		e.within(0, "the wait", func() {
			_, err := d.Wait(e.ctx, next)
			told(d, next, err)
		})
		held := e.marked("later", "pay")
		e.grant(holder, held)
		same, other := e.waits(d, e.marked("later", "pay")), e.waits(e.Driver(), e.marked("later", "refund"))
		e.release(holder, held)
		e.within(e.hearing(held)+e.ttl/100, "the answer", func() { <-same.over })
		told(d, same.c, same.err)
		other.granted(e.hearing(held)+driver.Recheck(held.TTL), "another scope")
	}},
	// A release leaves the marker however the name was got, shared or not, and also where it keeps the name.
	{name: "AMarkerIsLeftHoweverTheNameWasGot", needs: []need{dedups}, run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		got := func(_ driver.Grant, err error) { e.noError(err) }
		queued := func(c driver.Claim) { // one who has stood in the queue
			held := e.holds(other, c.Name)
			e.queue(d, c, c.Name)
			held.release()
		}
		ways := map[string]func(c *driver.Claim){
			"acquire":      func(c *driver.Claim) { e.grant(d, *c) },
			"wait":         func(c *driver.Claim) { got(e.wait(d, *c)) },
			"wait-plain":   func(c *driver.Claim) { got(e.wait(d, bare(*c))) },
			"wait-acquire": func(c *driver.Claim) { queued(*c); e.grant(d, *c) },
			"wait-wait":    func(c *driver.Claim) { queued(*c); got(e.wait(d, *c)) },
			"direct": func(c *driver.Claim) {
				held := e.holds(other, c.Name)
				w := e.waits(d, bare(*c))
				held.release()
				w.granted(e.hearing(*c)+driver.Recheck(c.TTL), c.Name)
			},
		}
		if e.can.Shared {
			ways["shared"] = func(c *driver.Claim) { c.Limit = driver.Readers; e.grant(d, *c) }
		}
		if e.can.Keep {
			ways["kept"] = func(c *driver.Claim) { e.grant(d, *c); c.Keep = time.Minute }
		}
		for what, get := range ways {
			c := e.marked(what, "pay")
			get(&c)
			e.release(d, c)
			for _, limit := range []int{0, c.Limit} {
				again := e.marked(what, "pay")
				again.Limit = limit
				e.duplicate(other, again, what)
			}
			if c.Keep > 0 {
				e.refused(other, e.claim(what), "within its time")
			} else {
				e.free(what)
			}
		}
	}},
}
