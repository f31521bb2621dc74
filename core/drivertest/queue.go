package drivertest

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// queueCases test the queue for a name.
var queueCases = []testCase{
	{name: "EntriesAreServedInTheirOrder", needs: []need{queues}, run: func(e *env) {
		holder, held := e.Driver(), e.lasting("name")
		e.grant(holder, held)
		var all []*waiter
		for range 4 {
			all = append(all, e.waits(e.Driver(), e.long("name")))
		}
		e.release(holder, held)
		for i, w := range all {
			w.granted(e.hearing(w.c), fmt.Sprint("waiter ", i))
			for _, later := range all[i+1:] {
				if later.ended() {
					e.Fatalf("one behind waiter %d was served before it ended", i)
				}
			}
			e.release(w.d, w.c)
		}
		e.nothingLeft()
	}},
	{name: "AFreeNameIsForTheFirstInTheQueue", needs: []need{queues}, run: func(e *env) {
		holder, first, second := e.Driver(), e.Driver(), e.Driver()
		held, a, b := e.lasting("name"), e.long("name"), e.long("name")
		e.grant(holder, held)
		e.queue(first, a, "the first")
		e.queue(second, b, "the second")
		e.release(holder, held) // from now on, a has it, or nobody but a gets it
		e.refused(holder, e.long("name"), "a stranger")
		e.refused(second, b, "the second")
		e.grant(first, a)
		e.refused(second, b, "the second beside the first")
		e.release(first, a)
		e.refused(holder, e.long("name"), "a stranger before the second")
		e.grant(second, b)
		e.release(second, b)
		e.free("name")
	}},
	{name: "ARefusalBeforeTheFirstHasNoLabel", needs: []need{queues, dedups}, run: func(e *env) {
		holder, first := e.Driver(), e.Driver()
		held, a := e.lasting("name"), e.marked("name", "pay") // which is not granted directly
		e.grant(holder, held)
		e.queue(first, a, "the first")
		e.release(holder, held)
		if h := e.refusal(holder, e.long("name"), "a stranger"); h.Label != "" || h.Exact {
			e.Errorf("%+v", h)
		}
	}},
	{name: "AnEntryStaysWhereItIsFromOneWaitToTheNext", needs: []need{queues}, run: func(e *env) {
		holder, first, second := e.Driver(), e.Driver(), e.Driver()
		held, a, b := e.lasting("name"), e.long("name"), e.long("name")
		e.grant(holder, held)
		e.queue(first, a, "the first")
		next := e.waits(second, b)
		w := e.waits(first, a)
		e.release(holder, held)
		w.granted(e.hearing(a)+driver.Recheck(a.TTL), "the first")
		if next.ended() {
			e.Fatal("the second was served, too")
		}
		e.release(first, a)
		next.granted(e.hearing(b), "the second")
	}},
	{name: "EachLookKeepsTheEntryAlive", needs: []need{queues}, run: func(e *env) {
		holder, first, second := e.Driver(), e.Driver(), e.Driver()
		held, a, b := e.lasting("name"), e.long("name"), e.long("name")
		e.grant(holder, held)
		w, next := e.waits(first, a), e.waits(second, b)
		e.sleep(2 * driver.PlaceLife(a.TTL))
		if w.ended() || next.ended() {
			e.Fatalf("%v, %v", w.err, next.err)
		}
		e.release(holder, held)
		w.granted(e.hearing(a), "the first")
		if next.ended() {
			e.Fatal("the second was served, too")
		}
		e.release(first, a)
		next.granted(e.hearing(b), "the second")
	}},
	{name: "ADeadEntryIsDroppedByWhoeverMeetsIt", needs: []need{queues}, run: func(e *env) {
		for _, what := range []string{"a waiter", "a stranger"} {
			holder, dead, alive := e.Driver(), e.Driver(), e.Driver()
			held, a, next := e.lasting("name"), e.long("name"), e.long("name")
			life := driver.PlaceLife(a.TTL)
			e.grant(holder, held)
			began := time.Now()
			e.queue(dead, a, what) // and is never heard of again
			queued := time.Now()
			e.release(holder, held)
			if what == "a waiter" {
				e.waits(alive, next).granted(life+driver.Recheck(next.TTL)+e.pace(next), what)
				e.release(alive, next)
			} else {
				e.freeAfter(life+e.ttl/50, what)
			}
			if lived := time.Since(began); lived < life {
				e.Errorf("%s met an entry that was dropped %s after its last look", what, lived)
			}
			if lived := time.Since(queued); lived > life+driver.Recheck(next.TTL)+e.pace(next)+e.slack() {
				e.Errorf("%s met an entry %s after its last look", what, lived)
			}
		}
	}},
	{name: "AReleaseByOneWhoOwnsNothingLeavesTheQueue", needs: []need{queues}, run: func(e *env) {
		holder, first, second := e.Driver(), e.Driver(), e.Driver()
		held, a, b := e.lasting("name"), e.long("name"), e.long("name")
		e.grant(holder, held)
		e.queue(first, a, "the first")
		next := e.waits(second, b)
		e.leaves(first, a, "leaving")
		if !e.owns(holder, held) {
			e.Fatal("that has freed the name")
		}
		e.release(holder, held)
		next.granted(e.hearing(b), "the next")
		e.release(second, b)
		e.free("name")
	}},
	{name: "WhoLeavesAFreeNameServesTheNext", needs: []need{queues}, run: func(e *env) {
		holder, first, second := e.Driver(), e.Driver(), e.Driver()
		held, a, b := e.lasting("name"), e.long("name"), e.long("name")
		e.grant(holder, held)
		e.queue(first, a, "the first")
		next := e.waits(second, b)
		e.release(holder, held) // to the first, who does not hear of it
		e.sleep(e.ttl / 20)
		e.ends(first, a, "leaving")
		next.granted(e.hearing(b), "the next")
	}},
	{name: "AGrantLeavesTheQueue", needs: []need{queues}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		for what, get := range map[string]func(c driver.Claim){
			"a wait":     func(c driver.Claim) { e.waits(d, c).granted(driver.Recheck(c.TTL)+e.pace(c), "the waiter") },
			"an acquire": func(c driver.Claim) { e.grant(d, c) },
		} {
			held, c := e.lasting("name"), e.long("name")
			e.grant(holder, held)
			e.queue(d, c, what)
			e.release(holder, held)
			get(c)
			e.release(d, c)
			e.free("name")
		}
		e.nothingLeft()
	}},
	{name: "WhoeverFindsTheNameFreeServesTheFirst", needs: []need{queues}, run: func(e *env) {
		holder, first, second := e.Driver(), e.Driver(), e.Driver()
		var held, a driver.Claim
		for queued := false; !queued; {
			held, a = e.claim("name"), e.long("name")
			a.TTL = max(a.TTL, 2*held.TTL) // its entry outlives the holder, as far as it can
			held.TTL = min(held.TTL, driver.PlaceLife(a.TTL)/2)
			e.grant(holder, held) // it expires, and nobody says so
			w := e.waits(first, a)
			w.cancel()
			if <-w.over; w.err != nil {
				queued = true
			} else {
				e.release(first, a) // the machine stood still, and the holder's TTL was over before
			}
		}
		b := e.long("name")
		e.eventually("it has expired", func() bool { return !e.owns(holder, held) })
		e.refused(second, b, "a stranger")
		e.grant(first, a)
		e.release(first, a)
		e.free("name")
	}},
	{name: "WaitersOfManyProcessesAreServedFairly", needs: []need{queues}, crowd: true, run: func(e *env) {
		holder, held := e.Driver(), e.lasting("name")
		e.grant(holder, held)
		const processes = 4
		var (
			wg     sync.WaitGroup
			mu     sync.Mutex
			served [processes]int
		)
		start := make(chan struct{})
		for i := range processes {
			d := e.Driver()
			c := e.long("name")
			w := e.waits(d, c)
			wg.Go(func() {
				<-start
				for range e.rounds(10) {
					<-w.over
					if w.err != nil {
						e.Errorf("process %d: %v", i, w.err)
						return
					}
					mu.Lock()
					served[i]++
					for _, n := range served {
						if n < served[i]-2 {
							e.Errorf("unfair: %v", served)
						}
					}
					mu.Unlock()
					c = e.long("name")
					next := e.waits(d, c) // it queues before it releases
					if err := d.Release(e.ctx, w.c); err != nil {
						e.Errorf("process %d: %v", i, err)
					}
					w = next
				}
				w.cancel()
				<-w.over
				_ = d.Release(e.ctx, w.c)
			})
		}
		close(start)
		e.release(holder, held)
		wg.Wait()
		e.nothingLeft()
	}},
}
