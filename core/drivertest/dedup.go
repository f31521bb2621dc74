package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

var dedupCases = []testCase{
	{name: "AMarkerStopsThoseWhoAskForIt", needs: dedups, run: func(e *env) {
		d := e.Driver()
		complete(e, d, "name", "pay", time.Hour)
		same := dedupClaim(e, "name", "pay", time.Hour)
		_, err := d.Acquire(e.Context(), same)
		if done, ok := errors.AsType[*driver.Duplicate](err); !ok || done.Label != "who" {
			e.Fatalf("acquire after completion: %v", err)
		}
		for what, c := range map[string]driver.Claim{
			"another scope": dedupClaim(e, "name", "refund", time.Hour),
			"no scope":      dedupClaim(e, "name", "", time.Hour),
			"another name":  dedupClaim(e, "nam", "epay", time.Hour),
			"no dedup":      e.claim("name"),
		} {
			if _, err := d.Acquire(e.Context(), c); err != nil {
				e.Errorf("%s: %v", what, err)
			}
			e.noError(d.Release(e.Context(), c))
		}
		if _, err := d.Acquire(e.Context(), same); err == nil {
			e.Error("the marker went with a release")
		}
	}},
	{name: "AMarkerGoesWithItsWindow", needs: dedups, run: func(e *env) {
		d := e.Driver()
		complete(e, d, "name", "pay", e.ttl)
		e.eventually("the marker expires", func() bool {
			_, err := d.Acquire(e.Context(), dedupClaim(e, "name", "pay", e.ttl))
			return err == nil
		})
	}},
	{name: "OnlyTheOwnerCompletes", needs: dedups, run: func(e *env) {
		d := e.Driver()
		forged := dedupClaim(e, "name", "pay", time.Hour)
		forged.Mark = true
		if err := d.Release(e.Context(), forged); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("completion of what nobody owns: %v", err)
		}
		c := dedupClaim(e, "name", "pay", time.Hour)
		e.grant(d, c)
		if err := d.Release(e.Context(), forged); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("completion with another token: %v", err)
		}
		e.noError(d.Release(e.Context(), c))
		e.grant(d, dedupClaim(e, "name", "pay", time.Hour))
	}},
}

func dedupClaim(e *env, name, scope string, window time.Duration) driver.Claim {
	c := e.claim(name)
	c.Label, c.Scope, c.Dedup = "who", scope, window
	return c
}

func complete(e *env, d driver.Driver, name, scope string, window time.Duration) {
	e.Helper()
	c := dedupClaim(e, name, scope, window)
	e.grant(d, c)
	c.Mark = true
	e.noError(d.Release(e.Context(), c))
}
