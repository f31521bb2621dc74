package drivertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// waitCases test what Wait returns. All backends run them; those that do not hear have more time.
var waitCases = []testCase{
	{name: "AWaitForAFreeNameIsGranted", run: func(e *env) {
		d, c := e.Driver(), e.long("name")
		e.within(0, "the wait", func() {
			if _, err := e.wait(d, c); err != nil {
				e.Fatal(err)
			}
		})
		if !e.owns(d, c) {
			e.Error("not the owner")
		}
		e.refused(e.Driver(), e.claim("name"), "another")
		e.release(d, c)
		e.free("name")
	}},
	{name: "AWaiterIsGrantedTheNameAtItsRelease", run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		held, c := e.lasting("name"), e.long("name")
		e.grant(holder, held)
		w := e.waits(d, c)
		e.sleep(e.ttl / 10)
		e.release(holder, held)
		w.granted(e.hearing(c), "the waiter")
		if !e.owns(d, c) {
			e.Error("not the owner")
		}
		e.release(d, c)
		e.free("name")
	}},
	{name: "AReleaseAtTheWaitIsNotMissed", run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		for i := range 20 {
			held, c := e.lasting("name"), e.long("name")
			e.grantAfterRelease(holder, held)
			got := make(chan error, 1)
			go func() { _, err := e.wait(d, c); got <- err }()
			e.sleep(time.Duration(i) * 100 * time.Microsecond)
			e.release(holder, held)
			e.within(e.hearing(c), "the wait", func() { e.noError(<-got) })
			e.release(d, c)
		}
		e.free("name")
	}},
	{name: "AWaitReturnsTheLastAnswerAtTheEndOfItsContext", run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		held, c := e.lasting("name"), e.long("name")
		held.Label = "who"
		e.grant(holder, held)
		ctx, cancel := context.WithTimeout(e.ctx, e.ttl/2)
		defer cancel()
		end, _ := ctx.Deadline()
		e.within(e.ttl/2+e.ttl/20, "the wait", func() {
			_, err := d.Wait(ctx, c)
			last, ok := errors.AsType[*driver.Held](err)
			if time.Until(end) > 0 || !ok && e.Slow == 0 {
				e.Fatalf("%s before the end of ctx: %v", time.Until(end), err)
			}
			if ok && last.Label != "who" {
				e.Errorf("%+v", last)
			}
		})
		e.leaves(d, c, "leaving")
	}},
	{name: "EachRefusalIsHeardAtOnce", run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		held, c := e.lasting("name"), e.long("name")
		held.Label = "who"
		e.grant(holder, held)
		e.within(e.ttl/20, "the first refusal", func() {
			w := e.waits(d, c)
			defer w.cancel()
			if w.ended() {
				e.Fatalf("it waits no more: %v", w.err)
			}
			if said := w.said(); said[0].Label != "who" || said[0].Remaining > held.TTL || said[0].Remaining < 0 {
				e.Errorf("%+v", said[0])
			}
			w.stop("the waiter")
		})
		e.leaves(d, c, "leaving")
	}},
	{name: "AWaiterLooksAgainWithinARecheck", needs: []need{hears}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		held, c := e.lasting("name"), e.long("name")
		e.grant(holder, held)
		began := time.Now()
		w := e.waits(d, c)
		e.sleep(3*driver.Recheck(c.TTL) + driver.Recheck(c.TTL)/2 + e.Slow)
		n, rounds := len(w.said()), int(time.Since(began)/driver.Recheck(c.TTL)) // more of them where the machine is busy
		if n < 3 || n > 6*(rounds+1) {                                           // each node of redlock may tell of its own
			e.Errorf("%d looks in %d rounds", n, rounds)
		}
		w.stop("the waiter")
		e.leaves(d, c, "leaving")
	}},
	{name: "AnOwnersWaitIsItsGrantAgain", run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		c.TTL *= 2 // the machine may stand still for a while
		first := e.grant(d, c)
		e.sleep(c.TTL / 2)
		g, err := e.wait(d, c)
		e.noError(err)
		if g.Fence < first.Fence {
			e.Errorf("fence %d after %d", g.Fence, first.Fence)
		}
		e.sleep(c.TTL * 6 / 10)
		if !e.owns(d, c) {
			e.Error("the wait has not set the full TTL")
		}
		e.release(d, c)
		e.free("name") // it was never in the queue
	}},
	{name: "AWaitForAnExpiredNameIsGranted", run: func(e *env) {
		holder, first, second := e.Driver(), e.Driver(), e.Driver()
		held, a, b := e.claim("name"), e.long("name"), e.long("name")
		began := time.Now()
		e.grant(holder, held) // and is never heard of again
		w := e.waits(first, a)
		if !e.can.Queue {
			w.granted(e.ttl+e.pace(held), "the waiter")
			return
		}
		next := e.waits(second, b)
		w.granted(e.ttl+e.pace(held), "the first")
		if time.Since(began) < held.TTL {
			e.Error("two owners")
		}
		if next.ended() {
			e.Fatal("the second was served, too")
		}
		e.release(first, a)
		next.granted(e.hearing(b), "the second")
		e.release(second, b)
		e.free("name")
	}},
	{name: "AGrantIsTrustedNoLongerThanItLasts", run: func(e *env) {
		holder, d, other := e.Driver(), e.Driver(), e.Driver()
		ways := map[string]func(c driver.Claim) (driver.Grant, time.Time){
			"an acquire": func(c driver.Claim) (driver.Grant, time.Time) {
				began := time.Now()
				return e.grant(d, c), began
			},
			"a wait for a free name": func(c driver.Claim) (driver.Grant, time.Time) {
				began := time.Now()
				g, err := e.wait(d, c)
				e.noError(err)
				return g, began
			},
			"a wait for a release": func(c driver.Claim) (driver.Grant, time.Time) {
				held := e.lasting("name")
				e.grant(holder, held)
				w := e.waits(d, c)
				e.sleep(driver.Recheck(c.TTL) * 3 / 2)
				e.release(holder, held)
				return w.granted(e.hearing(c), "the waiter"), w.began
			},
		}
		for what, way := range ways {
			c := e.claim("name")
			g, asked := way(c)
			if g.TTL < 0 || g.TTL > c.TTL {
				e.Fatalf("%s: a TTL of %s", what, g.TTL)
			}
			if !g.Asked.IsZero() {
				asked = g.Asked
			}
			if g.TTL == 0 {
				g.TTL = c.TTL
			}
			next := e.claim("name")
			if _, err := e.wait(other, next); err != nil {
				e.Fatalf("%s: %v", what, err)
			}
			if early := time.Until(asked.Add(g.TTL)); early > 0 {
				e.Errorf("%s: another has the name while the grant is trusted for %s more", what, early)
			}
			if late := time.Since(asked.Add(g.TTL)); late > e.pace(c)+driver.Recheck(c.TTL)+e.slack() {
				e.Errorf("%s: the name came free %s after the grant had ended", what, late)
			}
			e.release(other, next)
		}
	}},
	{name: "AWaitersClaimHasItsFullTime", run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		held, c := e.lasting("name"), e.long("name")
		e.grant(holder, held)
		w := e.waits(d, c)
		e.release(holder, held)
		w.granted(e.hearing(c), "the waiter")
		e.noError(e.renew(d, c)) // a direct grant is short at first
		e.sleep(c.TTL * 8 / 10)
		if !e.owns(d, c) {
			e.Error("its renewal has not given it the full TTL")
		}
	}},
	{name: "ALaterWaitOfTheSameTokenIsGranted", run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		held, c := e.lasting("name"), e.long("name")
		e.grant(holder, held)
		abandoned := e.waits(d, c) // core has given this one up
		w := e.waits(d, c)
		e.release(holder, held)
		w.granted(driver.Recheck(c.TTL)+e.hearing(c), "the later one")
		abandoned.cancel()
		<-abandoned.over
		e.release(d, c)
		e.free("name")
	}},
	{name: "WaitersOfManyProcessesNeverOverlap", crowd: true, run: func(e *env) {
		e.hammer(func(d driver.Driver, c driver.Claim) (driver.Grant, error) { return e.wait(d, c) })
	}},
	{name: "AWaitThatEndsBeforeItIsQueuedSaysSo", run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		held := e.lasting("name")
		e.grant(holder, held)
		for i := range 20 {
			c := e.long("name")
			ctx, cancel := context.WithTimeout(e.ctx, time.Duration(i)*100*time.Microsecond)
			_, err := d.Wait(ctx, c)
			cancel()
			if err == nil {
				e.Fatal("two owners")
			}
			if errors.Is(err, driver.ErrNotSent) {
				e.release(holder, held)
				e.grant(holder, held) // nobody comes first
				continue
			}
			e.leaves(d, c, "leaving")
		}
	}},
	{name: "WaitersWhoGiveUpAtTheReleaseLeaveNothing", crowd: true, run: func(e *env) {
		for round := range e.rounds(10) {
			holder, held := e.Driver(), e.lasting("name")
			e.grant(holder, held)
			var all []*waiter
			for range 5 {
				all = append(all, e.waits(e.Driver(), e.long("name")))
			}
			var wg sync.WaitGroup
			for _, w := range all {
				wg.Go(func() {
					w.cancel()
					<-w.over
					for range 3 { // a look may be under way
						if err := w.d.Release(e.ctx, w.c); err != nil && !errors.Is(err, driver.ErrNotOwner) {
							e.Errorf("release: %v", err)
						}
					}
				})
			}
			if round%2 == 0 {
				wg.Wait()
			}
			e.release(holder, held)
			wg.Wait()
			e.freeAfter(driver.PlaceLife(held.TTL)/3, "all have left")
		}
		e.nothingLeft()
	}},
	{name: "ManyShortWaitsLeaveNothing", crowd: true, run: func(e *env) {
		holder, held := e.Driver(), e.lasting("name")
		e.grant(holder, held)
		var wg sync.WaitGroup
		for i := range 12 {
			d := e.Driver()
			wg.Go(func() {
				for n := range e.rounds(10) {
					c := e.long("name")
					ctx, cancel := context.WithTimeout(e.ctx, time.Duration(1+(i+n)%5)*time.Millisecond)
					if _, err := d.Wait(ctx, c); err == nil {
						e.Error("two owners")
					}
					cancel()
					if err := d.Release(e.ctx, c); err != nil && !errors.Is(err, driver.ErrNotOwner) {
						e.Errorf("leaving: %v", err)
					}
				}
			})
		}
		wg.Wait()
		e.release(holder, held)
		e.freeAfter(driver.PlaceLife(held.TTL)/3, "all have left")
		e.nothingLeft()
	}},
}

// hearing is how long a waiter may take to hear of something.
func (e *env) hearing(c driver.Claim) time.Duration {
	if e.can.Hears {
		return e.Slow
	}
	return e.pace(c)
}

// pace is how long a waiter may take to find out what nobody tells.
func (e *env) pace(c driver.Claim) time.Duration {
	if e.can.Hears {
		return driver.Recheck(c.TTL) / 100
	}
	return time.Second + e.ttl/100 // as driver.Poll looks
}
