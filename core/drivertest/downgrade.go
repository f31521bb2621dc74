package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// downgraded is c as core renews and releases it once it is to be a reader.
func downgraded(c driver.Claim, g driver.Grant) driver.Claim {
	c.Shared, c.Downgraded, c.Fence, c.Fences = true, true, g.Fence, 0
	return c
}

// downgrade makes c, which was granted g, a reader.
func (e *env) downgrade(d driver.Driver, c driver.Claim, g driver.Grant) driver.Claim {
	e.Helper()
	c = downgraded(c, g)
	e.noError(d.Renew(e.Context(), []driver.Claim{c})[0])
	return c
}

// age lets the TTL of brief pass, by the service's own clock.
func (e *env) age() {
	e.Helper()
	e.grant(e.Driver(), e.brief(e.claim("hourglass")))
	next := e.claim("hourglass")
	e.eventually("time passes", func() bool { _, err := e.probe.Acquire(e.Context(), next); return err == nil })
	e.noError(e.probe.Release(e.Context(), next))
}

// downgradeCases test a writer that becomes a reader.
var downgradeCases = []testCase{
	{name: "AWriterLetsReadersInAndNoWriter", needs: shares, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		writer, reader := e.writer("name"), e.reader("name")
		writer.Label = "who"
		g := e.grant(a, writer)
		e.refused(b, reader, "a reader beside a writer")
		writer = e.downgrade(a, writer, g)
		e.refused(b, e.writer("name"), "a writer beside one that has become a reader")
		f := e.grant(b, reader).Fence
		if f < g.Fence {
			e.Errorf("a reader's fence is %d, beside %d", f, g.Fence)
		}
		for _, err := range a.Renew(e.Context(), []driver.Claim{reader, writer, writer}) {
			e.noError(err)
		}
		e.noError(a.Release(e.Context(), writer))
		e.refused(a, e.writer("name"), "a writer beside the reader")
		e.noError(b.Release(e.Context(), reader))
		if last := e.grant(b, e.writer("name")).Fence; last <= f && f > 0 {
			e.Errorf("a writer's fence is %d, after %d", last, f)
		}
	}},
	{name: "WhatOneWriterReservedIsNotGivenAgain", needs: func(can driver.Capabilities) bool { return can.Shared && can.Block }, run: func(e *env) {
		d, c := e.Driver(), e.writer("name")
		c.Fences = 16
		g := e.grant(d, c)
		reserved := g.Fence + uint64(max(1, g.Fences)) - 1
		g.Fence = min(g.Fence+1, reserved) // of its second turn
		c = e.downgrade(d, c, g)
		reader := e.reader("name")
		if f := e.grant(d, reader).Fence; f < g.Fence {
			e.Errorf("a reader's fence is %d, beside %d", f, g.Fence)
		}
		e.noError(d.Release(e.Context(), c))
		e.noError(d.Release(e.Context(), reader))
		if f := e.grant(d, e.writer("name")).Fence; f <= reserved {
			e.Errorf("a writer's fence is %d, and those up to %d are reserved", f, reserved)
		}
	}},
	{name: "AWriterThatTookTheNameOverLetsReadersIn", needs: func(can driver.Capabilities) bool { return can.Shared && can.Detach }, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		c, next := e.writer("name"), e.writer("name")
		e.grant(a, c)
		c.Keep, c.Handoff, next.Handoff = time.Minute, someHandoff, someHandoff
		e.noError(a.Release(e.Context(), c))
		g := e.grant(b, next)
		next.Handoff = ""
		next = e.downgrade(b, next, g)
		reader := e.reader("name")
		f := e.grant(a, reader).Fence
		if f < g.Fence {
			e.Errorf("a reader's fence is %d, beside %d", f, g.Fence)
		}
		e.noError(b.Renew(e.Context(), []driver.Claim{next})[0])
		e.noError(b.Release(e.Context(), next))
		e.refused(a, e.writer("name"), "a writer beside the reader")
		e.noError(a.Release(e.Context(), reader))
		if last := e.grant(a, e.writer("name")).Fence; last <= f && f > 0 {
			e.Errorf("a writer's fence is %d, after %d", last, f)
		}
	}},
	{name: "WhatIsLateDoesNotMakeItAWriterAgain", needs: shares, run: func(e *env) {
		d, c := e.Driver(), e.writer("name")
		reader := e.downgrade(d, c, e.grant(d, c))
		for _, beside := range []bool{false, true} {
			if beside {
				e.grant(d, e.reader("name"))
			}
			e.refused(d, c, "a late acquire")
			if err := d.Renew(e.Context(), []driver.Claim{c})[0]; !errors.Is(err, driver.ErrNotOwner) {
				e.Errorf("a late renewal: %v", err)
			}
		}
		e.noError(d.Release(e.Context(), reader))
		for what, err := range map[string]error{
			"another downgrade": d.Renew(e.Context(), []driver.Claim{reader})[0], "another release": d.Release(e.Context(), reader),
		} {
			if !errors.Is(err, driver.ErrNotOwner) {
				e.Errorf("%s: %v", what, err)
			}
		}
	}},
	{name: "OnlyTheOwnerBecomesAReader", needs: shares, run: func(e *env) {
		d, c, forged := e.Driver(), e.writer("name"), downgraded(e.writer("name"), driver.Grant{Fence: 1})
		notOwner := func(what string, c driver.Claim) {
			e.Helper()
			if err := d.Renew(e.Context(), []driver.Claim{c})[0]; !errors.Is(err, driver.ErrNotOwner) {
				e.Errorf("%s: %v", what, err)
			}
			if err := d.Release(e.Context(), c); !errors.Is(err, driver.ErrNotOwner) {
				e.Errorf("%s, released: %v", what, err)
			}
		}
		notOwner("of a free name", forged)
		e.grant(d, c)
		notOwner("of somebody else's", forged)
		e.refused(d, e.reader("name"), "a reader beside the writer")
		e.noError(d.Release(e.Context(), c))
		reader := e.reader("name")
		e.grant(d, reader)
		notOwner("beside a reader", forged)
		e.noError(d.Renew(e.Context(), []driver.Claim{reader})[0])
	}},
	{name: "AWriterWhoseTimeIsOverBecomesNothing", needs: shares, run: func(e *env) {
		d, c := e.Driver(), e.brief(e.writer("name"))
		g := e.grant(d, c)
		next := e.writer("name")
		e.eventually("the name is free", func() bool { _, err := d.Acquire(e.Context(), next); return err == nil })
		if err := d.Renew(e.Context(), []driver.Claim{downgraded(c, g)})[0]; !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("renewal: %v", err)
		}
		e.noError(d.Renew(e.Context(), []driver.Claim{next})[0])
	}},
	{name: "AWriterThatBecameAReaderHasTheFullTTLAgain", needs: shares, run: func(e *env) {
		d, c := e.Driver(), e.writer("name")
		c.TTL = 2 * e.ttl
		g := e.grant(d, c)
		for range 3 { // its first TTL is over by then
			e.age()
			c = e.downgrade(d, c, g)
			e.refused(d, e.claim("name"), "a writer")
		}
		c = e.brief(c)
		e.noError(d.Renew(e.Context(), []driver.Claim{c})[0])
		e.eventually("the name is free", func() bool { _, err := d.Acquire(e.Context(), e.claim("name")); return err == nil })
	}},
	{name: "ADowngradeThatWasNotHeardIsReleasedEitherWay", needs: shares, run: func(e *env) {
		d := e.Driver()
		for _, executed := range []bool{false, true} {
			c := e.writer("name")
			g := e.grant(d, c)
			if executed {
				e.downgrade(d, c, g)
			}
			e.noError(d.Release(e.Context(), downgraded(c, g)))
		}
		e.grant(d, e.writer("name"))
	}},
	{name: "ReadersThatWaitComeInBesideTheWriter", needs: shares, run: queued(func(e *env, q driver.Queuer, d driver.Driver) {
		c := e.writer("name")
		g := e.grant(d, c)
		all := e.readersWait(q)
		e.downgrade(d, c, g)
		e.within(2*time.Second, "all readers", all.Wait)
	})},
	{name: "AWriterThatWaitsGoesBeforeReadersThatComeLater", needs: shares, run: queued(func(e *env, q driver.Queuer, d driver.Driver) {
		c, next := e.writer("name"), e.writer("name")
		next.Place = token()
		g := e.grant(d, c)
		told := make(chan error, 1)
		before := e.queueLength()
		go func() { told <- q.Wait(e.Context(), next) }()
		e.longer(before, e.lineUpFor(), nil)
		c = e.downgrade(d, c, g)
		e.refused(q.(driver.Driver), next, "the writer that waits, beside one that has become a reader")
		e.eventually("a reader has to wait", func() bool {
			late := e.reader("name")
			_, err := d.Acquire(e.Context(), late)
			return err != nil || d.Release(e.Context(), late) != nil
		})
		e.noError(d.Release(e.Context(), c))
		for {
			e.within(2*time.Second, "the writer hears of it", func() { e.noError(<-told) })
			if _, err := q.(driver.Driver).Acquire(e.Context(), next); err == nil {
				return
			}
			go func() { told <- q.Wait(e.Context(), next) }() // it was told of the downgrade, which is a hint
		}
	})},
	{name: "AWriterThatBecameAReaderIsShownAsOne", needs: shares, run: inspecting(func(e *env, i inspector) {
		c := e.writer("name")
		c.Label = "who"
		g := e.grant(i, c)
		handle := e.look(i).Handle
		e.age()
		c = e.downgrade(i, c, g)
		info := e.look(i)
		if info.Kind != driver.HoldShared || info.Label != "" || info.Handle != "" || len(info.Holders) != 1 {
			e.Fatalf("%+v", info)
		}
		if one := info.Holders[0]; one.Label != "who" || one.Handle != handle || one.Remaining <= 0 || one.Limit != 0 {
			e.Errorf("%+v", one)
		}
		if info.Fence != 0 && info.Fence != g.Fence { // 0 if it is not known
			e.Errorf("its fence is %d, and was %d", info.Fence, g.Fence)
		}
		if held := min(info.HeldFor, info.Holders[0].HeldFor); !e.Timeless && g.Fence > 0 && held < e.ttl/2 {
			e.Errorf("held for %s: %+v", held, info)
		}
		e.evict(i, driver.Holder{Handle: handle}, c)
		e.grant(i, e.writer("name"))
	})},
	{name: "WorkGoesOnAsAReader", needs: shares, run: func(e *env) {
		a, b := e.briefly(e.locker(e.Driver())), e.locker(e.Driver())
		err := a.Do(e.Context(), "name", func(ctx context.Context) error {
			x, _ := core.FromContext(ctx)
			fence := x.Fence()
			e.noError(x.Downgrade(ctx))
			reader, err := b.Acquire(ctx, "name", core.WithShared())
			e.noError(err)
			if reader.Fence() < fence || x.Fence() != fence {
				e.Errorf("fences %d and %d, of a writer that had %d", reader.Fence(), x.Fence(), fence)
			}
			if _, err := b.TryAcquire(e.Context(), "name"); !errors.Is(err, core.ErrHeld) {
				e.Errorf("a writer: %v", err)
			}
			e.renewed(x)
			return reader.Release(ctx)
		})
		e.noError(err)
		x, err := b.TryAcquire(e.Context(), "name")
		e.noError(err)
		e.noError(x.Release(e.Context()))
	}},
}
