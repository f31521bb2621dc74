package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// outageCases kill the servers.
var outageCases = []testCase{
	// While the servers are dead everybody is told so. When they are back, an owner is still that, or hears of its loss where
	// they forget, and a waiter that has begun before gets the name from it, with a larger fence.
	{name: "AKilledServerIsUnavailableAndComesBack", needs: []need{servers}, run: func(e *env) {
		own := e.Own()
		d, other, third := own.Driver(), own.Driver(), own.Driver()
		e.shows, _ = other.(inspect.Inspector)
		held, waiting := e.lasting("name"), e.lasting("name")
		before := e.grant(d, held)
		w := e.waits(third, waiting)
		e.refused(other, e.claim("name"), "the other process is connected")
		own.Kill()
		probe := e.lasting("name")
		e.eventually("it is missed", func() bool { // some servers' processes outlive them by a moment, and answer
			ctx, cancel := context.WithTimeout(e.ctx, driver.Patience(probe.TTL))
			defer cancel()
			_, err := other.Acquire(ctx, probe)
			if err == nil {
				e.Fatal("two owners")
			}
			return driver.Explain(err).Nobody
		})
		own.Restart()
		renew := func() error {
			ctx, cancel := context.WithTimeout(e.ctx, driver.Patience(held.TTL))
			defer cancel()
			return d.Renew(ctx, []driver.Claim{held})[0]
		}
		if own.Forgetful {
			e.eventually("the owner hears of its loss", func() bool { return errors.Is(renew(), driver.ErrNotOwner) })
		} else {
			e.eventually("it is renewed", func() bool {
				err := renew()
				if errors.Is(err, driver.ErrNotOwner) {
					e.Fatal("it has lost the name")
				}
				return err == nil
			})
			if w.ended() {
				e.Fatalf("two owners: %+v, %v", w.g, w.err)
			}
			e.release(d, held)
		}
		g := w.granted(time.Minute, "the waiter")
		if e.can.Fence && g.Fence <= before.Fence {
			e.Errorf("fence %d after %d", g.Fence, before.Fence)
		}
		e.release(third, waiting)
		e.ends(other, probe, "the probe")
	}},
}
