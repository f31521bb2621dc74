package drivertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// renewCases test Renew.
var renewCases = []testCase{
	{name: "RenewalGivesTheFullTTLAgain", run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		e.grant(d, c)
		for range 4 {
			e.sleep(e.ttl / 2)
			e.noError(e.renew(d, c))
		}
		e.freeAfter(e.ttl+e.ttl/50, "nobody renews any more")
	}},
	{name: "ARenewalSetsItsOwnTTL", run: func(e *env) { // a hand-over inside the process can have changed it
		d, c := e.Driver(), e.claim("name")
		e.grant(d, c)
		long := c
		long.TTL = 3 * e.ttl
		e.noError(e.renew(d, long))
		e.sleep(e.ttl * 3 / 2)
		e.refused(e.Driver(), e.claim("name"), "within the longer TTL")
		if !e.owns(d, c) {
			e.Fatal("it has kept the shorter TTL")
		}
		e.noError(e.renew(d, c))
		e.freeAfter(e.ttl+e.ttl/50, "the shorter TTL")
	}},
	{name: "RenewalWithoutTTLOnlyVerifies", run: func(e *env) {
		d, c, other := e.Driver(), e.claim("name"), e.Driver()
		e.grant(other, e.claim("another")) // it is connected
		e.grant(d, c)
		for range 2 { // and leaves the lease as it is
			if !e.owns(d, c) {
				e.Fatal("not the owner")
			}
		}
		e.refused(other, e.claim("name"), "verification has freed the name")
		e.eventually("the name expires under verification", func() bool { return !e.owns(d, c) })
	}},
	{name: "RenewalAnswersEachClaimForItself", run: func(e *env) {
		d := e.Driver()
		mine, gone, theirs := e.lasting("mine"), e.lasting("gone"), e.lasting("theirs")
		e.grant(d, mine)
		e.grant(d, theirs)
		forged := theirs
		forged.Token = token()
		errs := d.Renew(e.ctx, []driver.Claim{gone, mine, forged, mine, theirs})
		for i, want := range []error{driver.ErrNotOwner, nil, driver.ErrNotOwner, nil, nil} {
			if len(errs) != 5 || !errors.Is(errs[i], want) {
				e.Fatalf("claim %d: not %v: %v", i, want, errs)
			}
		}
		if errs := d.Renew(e.ctx, nil); len(errs) != 0 {
			e.Errorf("no claims: %v", errs)
		}
	}},
	{name: "AFullBatchOfRenewalsIsAnswered", run: func(e *env) {
		d := e.Driver()
		var claims []driver.Claim
		for i := range driver.MaxRenewals {
			c := e.lasting(fmt.Sprint("name-", i))
			if i%2 == 0 {
				e.grant(d, c)
			}
			c.TTL -= time.Duration(i) * time.Second / 2 // each its own
			claims = append(claims, c)
		}
		for i, err := range d.Renew(e.ctx, claims) {
			if mine := i%2 == 0; mine != (err == nil) || !mine && !errors.Is(err, driver.ErrNotOwner) {
				e.Errorf("claim %d: %v", i, err)
			}
		}
	}},
	{name: "ARenewalAfterTheReleaseBringsNothingBack", run: func(e *env) {
		d, c := e.Driver(), e.lasting("name")
		e.grant(d, c)
		e.release(d, c)
		if err := e.renew(d, c); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("%v", err)
		}
		e.free("name")
	}},
	{name: "RenewalsOfAllKindsAreAnsweredEachForItself", needs: []need{shares}, run: func(e *env) {
		d := e.Driver()
		reader, writer, gone := e.reader("read"), e.lasting("written"), e.reader("read")
		e.grant(d, reader)
		e.grant(d, writer)
		forged := e.lasting("written")
		errs := d.Renew(e.ctx, []driver.Claim{gone, writer, forged, reader, writer, reader})
		for i, want := range []error{driver.ErrNotOwner, nil, driver.ErrNotOwner, nil, nil, nil} {
			if len(errs) != 6 || !errors.Is(errs[i], want) {
				e.Fatalf("claim %d: not %v: %v", i, want, errs)
			}
		}
	}},
}
