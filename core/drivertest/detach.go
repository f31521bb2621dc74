package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

func detaches(can driver.Capabilities) bool { return can.Detach }

// ticketed is a release that leaves the name for a ticket.
func ticketed(c driver.Claim, ticket string, keep time.Duration) driver.Claim {
	c.Ticket, c.Keep = ticket, keep
	return c
}

const (
	someTicket  = "ticket-00000000000001"
	otherTicket = "ticket-00000000000002"
)

// detachCases are those of a name that goes from one process to another by a ticket.
var detachCases = []testCase{
	{name: "ANameLeftForATicketGoesToNobodyElse", needs: detaches, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		mine := e.claim("name")
		mine.Label = "who"
		first := e.grant(a, mine)
		e.noError(a.Release(e.Context(), ticketed(mine, someTicket, time.Minute)))
		refused := func(what string, c driver.Claim) {
			held := e.refusal(b, c, what)
			if held.Label != "who" || held.Exact || held.Remaining <= 0 || held.Remaining > time.Minute {
				e.Errorf("%s: %+v", what, held)
			}
		}
		wrong := e.claim("name")
		wrong.Ticket = otherTicket
		refused("one without a ticket", e.claim("name"))
		refused("one with another ticket", wrong)
		refused("the token that owned it", mine)
		if err := a.Renew(e.Context(), []driver.Claim{mine})[0]; !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("renewal: %v", err)
		}
		if err := a.Release(e.Context(), mine); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("another release: %v", err)
		}
		right := e.claim("name")
		right.Ticket, right.Label = someTicket, "whom"
		if g := e.grant(b, right); e.Driver().Capabilities().Fence && g.Fence <= first.Fence {
			e.Errorf("fence %d after %d", g.Fence, first.Fence)
		}
	}},
	{name: "ATicketWorksOnceAndAgainForWhoHasUsedIt", needs: detaches, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		old, mine, theirs := e.claim("name"), e.claim("name"), e.claim("name")
		e.grant(a, old)
		e.noError(a.Release(e.Context(), ticketed(old, someTicket, time.Minute)))
		mine.Ticket, theirs.Ticket = someTicket, someTicket
		first := e.grant(b, mine)
		if again := e.grant(b, mine); again.Fence < first.Fence {
			e.Errorf("fence %d after %d", again.Fence, first.Fence)
		}
		e.refused(a, theirs, "a used ticket")
		e.noError(b.Renew(e.Context(), []driver.Claim{mine})[0])
		e.noError(b.Release(e.Context(), mine))
		e.grant(a, theirs) // as anybody
	}},
	{name: "ANameLeftForATicketComesFreeAtItsTime", needs: detaches, run: func(e *env) {
		d, c, late := e.Driver(), e.claim("name"), e.claim("name")
		e.grant(d, c)
		released := time.Now()
		e.noError(d.Release(e.Context(), ticketed(c, someTicket, e.ttl/2)))
		e.eventually("the name comes free", func() bool { _, err := d.Acquire(e.Context(), e.claim("name")); return err == nil })
		if after := time.Since(released); after < e.ttl/2 {
			e.Errorf("free after %s, not %s", after, e.ttl/2)
		}
		late.Ticket = someTicket
		e.refused(d, late, "a ticket whose time is over")
	}},
	{name: "ATicketOfNoNameIsAnOrdinaryClaim", needs: detaches, run: func(e *env) {
		c := e.claim("name")
		c.Ticket = someTicket
		e.grant(e.Driver(), c)
	}},
	{name: "ATicketGoesBeforeWhoeverStandsInLine", needs: detaches, run: waiting(func(e *env) {
		x := e.held()
		waiter := e.acquire(e.locker(e.Driver()))
		ticket, err := x.Detach(e.Context(), time.Minute)
		e.noError(err)
		y, err := e.locker(e.Driver()).Attach(e.Context(), ticket)
		e.noError(err)
		if waiter.ended() {
			e.Error("the waiter has it too")
		}
		e.noError(y.Check(e.Context()))
		e.noError(y.Release(e.Context()))
		z := waiter.within(0, "the waiter")
		if e.Driver().Capabilities().Fence && (y.Fence() <= x.Fence() || z.Fence() <= y.Fence()) {
			e.Errorf("fences %d, %d, %d", x.Fence(), y.Fence(), z.Fence())
		}
		e.noError(z.Release(e.Context()))
		e.nothingLeft()
	})},
	{name: "AUsedTicketWaitsAsAnybody", needs: detaches, run: func(e *env) {
		again := e.locker(e.Driver())
		x, err := e.locker(e.Driver()).Acquire(e.Context(), "name")
		e.noError(err)
		ticket, err := x.Detach(e.Context(), time.Minute)
		e.noError(err)
		y, err := e.locker(e.Driver()).Attach(e.Context(), ticket)
		e.noError(err)
		_, err = again.Attach(e.Context(), ticket, core.WithWait(0))
		e.isHeld(err)
		go func() { e.noErrorHere(y.Release(e.Context())) }()
		z, err := again.Attach(e.Context(), ticket)
		e.noError(err)
		e.noError(z.Release(e.Context()))
	}},
}
