package drivertest

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// waitCases test what Wait returns. All backends run them; those that do not hear have more time.
var waitCases = []testCase{
	// A Wait is granted the name at once where it is free, and else at the release, and then owns it as after an Acquire.
	{name: "AWaiterIsGrantedTheNameAtItsRelease", run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		for _, name := range []string{"free", "held"} {
			c := e.long(name)
			if name == "free" {
				e.within(0, "the wait", func() { _, err := e.wait(d, c); e.noError(err) })
			} else {
				held := e.holds(holder, name)
				w := e.waits(d, c)
				e.sleep(e.ttl / 10)
				held.release()
				w.granted(e.hearing(c), "the waiter")
			}
			if !e.owns(d, c) {
				e.Error("not the owner")
			}
			e.refused(holder, e.claim(name), "another")
			e.release(d, c)
			e.free(name)
		}
	}},
	// A release that comes as a Wait looks, listens, begins or ends is not missed, and the owner does not stand in the queue again.
	{name: "AReleaseAtTheWaitIsNotMissed", run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		for i := range 40 {
			held, c, patience := e.lasting("name"), e.long("name"), time.Minute
			e.grant(holder, held)
			if i%2 == 1 && e.can.Queue { // it is there already, and looks as often as it can
				e.queue(d, c, "the waiter")
				patience = time.Millisecond + e.Slow
			}
			got := make(chan struct{})
			go func() {
				defer close(got)
				for granted := false; !granted && e.ctx.Err() == nil; {
					ctx, cancel := context.WithTimeout(e.ctx, patience)
					_, err := d.Wait(ctx, c)
					cancel()
					granted = err == nil
				}
			}()
			e.sleep(time.Duration(i) * 50 * time.Microsecond)
			e.release(holder, held)
			e.within(e.hearing(c), "the wait", func() { <-got })
			e.release(d, c)
			e.free("name") // at once
		}
		e.nothingLeft()
	}},
	// A Wait tells each refusal at once and looks again within a Recheck. When its context ends, and not before, it returns the
	// last one.
	{name: "AWaitTellsEachRefusalAndReturnsTheLast", run: func(e *env) {
		held, d, c := e.holds(e.Driver(), "name"), e.Driver(), e.long("name")
		began := time.Now()
		var w *waiter
		e.within(e.ttl/20, "the first refusal", func() { w = e.waits(d, c) })
		if said := w.said(); len(said) > 0 && (said[0].Label != "who" || said[0].Remaining > held.c.TTL || said[0].Remaining < 0) {
			e.Errorf("%+v", said[0])
		}
		if e.can.Hears {
			e.sleep(3*driver.Recheck(c.TTL) + driver.Recheck(c.TTL)/2 + e.Slow)
			n, rounds := len(w.said()), int(time.Since(began)/driver.Recheck(c.TTL)) // more of them where the machine is busy
			if n < 3 || n > 6*(rounds+1) {                                           // each node of redlock may tell of its own
				e.Errorf("%d looks in %d rounds", n, rounds)
			}
		}
		e.within(e.ttl/20, "its end", func() { w.stop("the waiter") })
		if last, ok := errors.AsType[*driver.Held](w.err); ok && last.Label != "who" {
			e.Errorf("%+v", last)
		}
		e.leaves(d, c, "leaving")
	}},
	// A holder that dies is not waited for after its TTL. One waiter gets the name then, and the next one after it.
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
		if took := time.Since(began); took < held.TTL-time.Millisecond { // which backends count in, from the last whole one on
			e.Errorf("two owners: after %s", took)
		}
		if next.ended() {
			e.Fatal("the second was served, too")
		}
		w.release()
		next.granted(e.hearing(b), "the second")
		next.release()
		e.free("name")
	}},
	// A grant is trusted from before its request, or from when the backend says that it was asked for, and no longer than
	// the name is kept from others: however the name was got, and where answers and messages come late.
	{name: "AGrantIsTrustedNoLongerThanItLasts", run: func(e *env) {
		holder, other := e.Driver(), e.Driver()
		var (
			late time.Duration
			next []*waiter
			ends []time.Time
		)
		get := func(d driver.Driver, name string) {
			for way, get := range map[string]func(c driver.Claim) (driver.Grant, time.Time){
				"acquire": func(c driver.Claim) (driver.Grant, time.Time) {
					began := time.Now()
					return e.grant(d, c), began
				},
				"free": func(c driver.Claim) (driver.Grant, time.Time) {
					began := time.Now()
					g, err := e.wait(d, c)
					e.noError(err)
					return g, began
				},
				"released": func(c driver.Claim) (driver.Grant, time.Time) {
					held := e.holds(holder, c.Name)
					w := e.waits(d, c)
					e.sleep(driver.Recheck(c.TTL) * 3 / 2)
					held.release()
					return w.granted(e.hearing(c)+late, "the waiter"), w.began
				},
			} {
				c := e.claim(name + way)
				g, asked := get(c)
				if g.TTL < 0 || g.TTL > c.TTL {
					e.Fatalf("%s: a TTL of %s", c.Name, g.TTL)
				}
				if !g.Asked.IsZero() {
					asked = g.Asked
				}
				next = append(next, e.begins(other, e.claim(c.Name)))
				ends = append(ends, asked.Add(cmp.Or(g.TTL, c.TTL)))
			}
		}
		get(e.Driver(), "")
		if e.Through != nil {
			d, through := e.connect()
			e.grant(d, e.claim("before")) // it is connected
			late = e.ttl / 40
			lag(through, late)
			defer lag(through, 0)
			get(d, "late-")
		}
		for i, w := range next {
			w.granted(e.ttl+late+e.pace(w.c)+driver.Recheck(w.c.TTL), w.c.Name)
			if early := ends[i].Sub(w.at); early > 0 {
				e.Errorf("%s: another has the name while the grant is trusted for %s more", w.c.Name, early)
			}
			if over := w.at.Sub(ends[i]); over > late+e.pace(w.c)+driver.Recheck(w.c.TTL)+e.slack() {
				e.Errorf("%s: the name came free %s after the grant had ended", w.c.Name, over)
			}
		}
	}},
	// A Wait is granted the name though an earlier one of the same token, which core has given up, is still under way.
	{name: "ALaterWaitOfTheSameTokenIsGranted", run: func(e *env) {
		held, d, c := e.holds(e.Driver(), "name"), e.Driver(), e.long("name")
		abandoned := e.waits(d, c)
		w := e.waits(d, c)
		held.release()
		w.granted(driver.Recheck(c.TTL)+e.hearing(c), "the later one")
		abandoned.cancel()
		<-abandoned.over
		e.release(d, c)
		e.free("name")
	}},
	// A Wait whose context ends as it begins says that it has sent nothing only if it is not in the queue, now or later.
	{name: "AWaitThatEndsBeforeItIsQueuedSaysSo", run: func(e *env) {
		d, held := e.Driver(), e.holds(e.Driver(), "name")
		for i := range 20 {
			c := e.long("name")
			ctx, cancel := context.WithTimeout(e.ctx, time.Duration(i)*100*time.Microsecond)
			_, err := d.Wait(ctx, c)
			cancel()
			if err == nil {
				e.Fatal("two owners")
			}
			if errors.Is(err, driver.ErrNotSent) {
				held.release()
				e.grant(held.d, held.c) // nobody comes first
				continue
			}
			e.leaves(d, c, "leaving")
		}
	}},
	// Of many who give up, as they look and at the release itself, nothing is left: the name is free for others at once.
	{name: "WaitersWhoGiveUpLeaveNothing", crowd: true, run: func(e *env) {
		holder := e.Driver()
		processes := make([]driver.Driver, 8)
		for i := range processes {
			processes[i] = e.Driver()
		}
		for round := range e.rounds(12) {
			var queued, left sync.WaitGroup
			held, start, early := e.holds(holder, "name"), make(chan struct{}), round%2 == 0
			for i, d := range processes {
				w := e.begins(d, e.long("name"))
				queued.Add(1)
				left.Go(func() {
					if i%2 == 0 { // as it looks, or a moment later
						time.Sleep(time.Duration(1+(i+round)%5) * time.Millisecond)
						queued.Done()
					} else {
						select {
						case <-w.first:
						case <-w.over:
						}
						queued.Done()
						<-start
					}
					w.cancel()
					if <-w.over; w.err == nil && early {
						e.Error("two owners")
					}
					for range 3 { // a look may be under way
						if err := d.Release(e.ctx, w.c); err != nil && !errors.Is(err, driver.ErrNotOwner) {
							e.Errorf("leaving: %v", err)
						}
					}
				})
			}
			queued.Wait()
			time.Sleep(e.Slow)
			close(start)
			if early {
				left.Wait()
			}
			held.release()
			left.Wait()
			e.freeAfter("name", driver.PlaceLife(held.c.TTL)/3, "all have left")
		}
		e.nothingLeft()
	}},
}

// lag has what servers say come late.
func lag(through []Wire, by time.Duration) {
	for _, wire := range through {
		wire.SetDelay(0, by)
	}
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
