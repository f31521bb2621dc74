package drivertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// renewCases test Renew.
var renewCases = []testCase{
	// A renewal sets the full TTL again, of every kind of claim, and of a grant by whoever freed the name, which is short at
	// first. Nothing else does: without one the name comes free.
	{name: "RenewalGivesTheFullTTLAgain", run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		held, waited := e.holds(other, "waited"), e.claim("waited")
		waited.TTL = 5 * e.ttl
		w := e.waits(d, waited)
		held.release()
		w.granted(e.hearing(waited), "the waiter")
		e.noError(e.renew(d, waited))
		owners := e.kinds(itself)
		for what, c := range owners {
			owners[what] = e.brief(c)
			e.grant(d, owners[what])
		}
		for range 5 {
			e.sleep(e.ttl * 4 / 10)
			for what, c := range owners {
				e.noError(e.renew(d, c))
				e.refused(other, e.claim(what), what)
			}
		}
		if !e.owns(d, waited) {
			e.Error("a waiter's renewal has not given it the full TTL")
		}
		for what := range owners {
			e.freeAfter(what, e.ttl+e.ttl/50, "nobody renews any more")
		}
	}},
	// A renewal without a TTL tells the owner from others, and changes nothing: the name expires under it.
	{name: "RenewalWithoutTTLOnlyVerifies", run: func(e *env) {
		d, other, owners := e.Driver(), e.Driver(), e.kinds(itself)
		e.grant(other, e.claim("another")) // it is connected
		for what, c := range owners {
			owners[what] = e.brief(c)
			e.grant(d, owners[what])
			for range 2 {
				if !e.owns(d, c) {
					e.Fatalf("%s: not the owner", what)
				}
			}
			e.refused(other, e.claim(what), "verification has freed the name")
		}
		for what, c := range owners {
			e.eventually(what+" expires under verification", func() bool { return !e.owns(d, c) })
		}
	}},
	// In one call each claim has its own answer: owners and others, of all kinds, the same one twice, others with a TTL of their own,
	// and up to the last of as many as there may be.
	{name: "RenewalAnswersEachClaimForItself", run: func(e *env) {
		d := e.Driver()
		var (
			claims []driver.Claim
			want   []error
		)
		add := func(err error, all ...driver.Claim) {
			for _, c := range all {
				claims, want = append(claims, c), append(want, err)
			}
		}
		for what, c := range e.kinds(itself) {
			e.grant(d, c)
			forged := c
			forged.Token = token()
			add(driver.ErrNotOwner, e.lasting("free-"+what), forged)
			add(nil, c, c)
		}
		few := len(claims)
		lasts := make(map[string]time.Duration) // each renewed name, unless something else bounds its TTL
		for i := few; i < driver.MaxRenewals; i++ {
			c, err := e.lasting(fmt.Sprint("name-", i)), driver.ErrNotOwner
			whole := false
			if i%2 == 0 {
				whole, err = e.grant(d, c).TTL == 0, nil
			}
			c.TTL -= time.Duration(i) * time.Second / 2
			if add(err, c); whole {
				lasts[c.Name] = c.TTL
			}
		}
		for _, n := range []int{0, few, driver.MaxRenewals} {
			errs := d.Renew(e.ctx, claims[:n])
			if len(errs) != n {
				e.Fatalf("%d answers to %d claims", len(errs), n)
			}
			for i, err := range errs {
				if !errors.Is(err, want[i]) {
					e.Errorf("claim %d of %d is not %v: %v", i, n, want[i], err)
				}
			}
		}
		for name, life := range lasts {
			left := e.refusal(d, e.claim(name), name).Remaining
			if left > life+e.can.MinTTL || left > 0 && left < life-e.slack()-5*time.Second {
				e.Errorf("%s lasts %s and not %s", name, left, life)
			}
		}
	}},
}
