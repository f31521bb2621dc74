package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

func detaches(can driver.Capabilities) bool { return can.Detach }

// handedOff is a release that leaves the name for a hand-off.
func handedOff(c driver.Claim, handoff string, keep time.Duration) driver.Claim {
	c.Handoff, c.Keep = handoff, keep
	return c
}

const (
	someHandoff  = "handoff-0000000000001"
	otherHandoff = "handoff-0000000000002"
)

// detachCases test a name that goes from one process to another by a hand-off.
var detachCases = []testCase{
	{name: "ANameLeftForAHandoffGoesToNobodyElse", needs: detaches, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		mine := e.claim("name")
		mine.Label = "who"
		first := e.grant(a, mine)
		e.noError(a.Release(e.Context(), handedOff(mine, someHandoff, time.Minute)))
		refused := func(what string, c driver.Claim) {
			held := e.refusal(b, c, what)
			if held.Label != "who" || held.Exact || held.Remaining <= 0 || held.Remaining > time.Minute {
				e.Errorf("%s: %+v", what, held)
			}
		}
		wrong := e.claim("name")
		wrong.Handoff = otherHandoff
		refused("one without a hand-off", e.claim("name"))
		refused("one with another hand-off", wrong)
		refused("the token that owned it", mine)
		if err := a.Renew(e.Context(), []driver.Claim{mine})[0]; !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("renewal: %v", err)
		}
		if err := a.Release(e.Context(), mine); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("another release: %v", err)
		}
		right := e.claim("name")
		right.Handoff, right.Label = someHandoff, "whom"
		if g := e.grant(b, right); e.probe.Capabilities().Fence && g.Fence <= first.Fence {
			e.Errorf("fence %d after %d", g.Fence, first.Fence)
		}
	}},
	{name: "AHandoffWorksOnceAndAgainForWhoHasUsedIt", needs: detaches, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		old, mine, theirs := e.writer("name"), e.writer("name"), e.writer("name")
		e.grant(a, old)
		e.noError(a.Release(e.Context(), handedOff(old, someHandoff, time.Minute)))
		mine.Handoff, theirs.Handoff = someHandoff, someHandoff
		first := e.grant(b, mine)
		if again := e.grant(b, mine); again.Fence < first.Fence {
			e.Errorf("fence %d after %d", again.Fence, first.Fence)
		}
		e.refused(a, theirs, "a used hand-off")
		e.noError(b.Renew(e.Context(), []driver.Claim{mine})[0])
		e.noError(b.Release(e.Context(), mine))
		e.grant(a, theirs) // as anybody
	}},
	{name: "ANameLeftForAHandoffComesFreeAtItsTime", needs: detaches, run: func(e *env) {
		d, c, late := e.Driver(), e.claim("name"), e.claim("name")
		e.grant(d, c)
		released := time.Now()
		e.noError(d.Release(e.Context(), handedOff(c, someHandoff, e.ttl/2)))
		e.eventually("the name comes free", func() bool { _, err := d.Acquire(e.Context(), e.claim("name")); return err == nil })
		if after := time.Since(released); after < e.ttl/2 {
			e.Errorf("free after %s, not %s", after, e.ttl/2)
		}
		late.Handoff = someHandoff
		e.refused(d, late, "a hand-off whose time is over")
	}},
	{name: "AHandoffOfNoNameIsAnOrdinaryClaim", needs: detaches, run: func(e *env) {
		c := e.claim("name")
		c.Handoff = someHandoff
		e.grant(e.Driver(), c)
	}},
	{name: "AHandoffGoesBeforeWhoeverStandsInLine", needs: detaches, run: waiting(func(e *env) {
		x := e.held()
		waiter := e.acquire(e.locker(e.Driver()))
		handoff, err := x.Detach(e.Context(), time.Minute)
		e.noError(err)
		y, err := e.locker(e.Driver()).Attach(e.Context(), handoff)
		e.noError(err)
		if waiter.ended() {
			e.Error("the waiter has it too")
		}
		e.noError(y.Release(e.Context()))
		z := waiter.within(0, "the waiter")
		if e.probe.Capabilities().Fence && (y.Fence() <= x.Fence() || z.Fence() <= y.Fence()) {
			e.Errorf("fences %d, %d, %d", x.Fence(), y.Fence(), z.Fence())
		}
		e.noError(z.Release(e.Context()))
		e.nothingLeft()
	})},
	{name: "AUsedHandoffWaitsAsAnybody", needs: detaches, run: func(e *env) {
		again := e.locker(e.Driver())
		x, err := e.locker(e.Driver()).Acquire(e.Context(), "name")
		e.noError(err)
		handoff, err := x.Detach(e.Context(), time.Minute)
		e.noError(err)
		y, err := e.locker(e.Driver()).Attach(e.Context(), handoff)
		e.noError(err)
		_, err = again.Attach(e.Context(), handoff, core.WithWait(0))
		e.isHeld(err)
		released := make(chan error, 1)
		go func() { released <- y.Release(e.Context()) }()
		z, err := again.Attach(e.Context(), handoff)
		e.noError(err)
		e.noError(<-released) // others may have the name before the answer is here
		e.noError(z.Release(e.Context()))
	}},
}
