package drivertest

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// queueCases test the queue for a name.
var queueCases = []testCase{
	// Entries are served in the order in which they came, one after the other, at once: those too of processes that queue again as
	// they release. That one's Wait has ended and begun again moves it not, and all have lived for twice the life of an entry that
	// nobody looks at.
	{name: "EntriesAreServedInTheirOrder", needs: []need{queues, ordered}, run: func(e *env) {
		held := e.holds(e.Driver(), "name")
		var all []*waiter
		for range 4 {
			all = append(all, e.waits(e.Driver(), e.long("name")))
		}
		all[0].stop("the first")
		all[0] = e.waits(all[0].d, all[0].c)
		e.sleep(2 * driver.PlaceLife(all[0].c.TTL))
		for i, w := range all {
			if w.ended() {
				e.Fatalf("waiter %d: %+v, %v", i, w.g, w.err)
			}
		}
		held.release()
		for i := 0; i < len(all); i++ {
			w := all[i]
			w.granted(e.hearing(w.c), fmt.Sprint("waiter ", i))
			if i < 8 {
				all = append(all, e.waits(w.d, e.long("name")))
			}
			for _, later := range all[i+1:] {
				if later.ended() {
					e.Fatalf("one behind waiter %d was served before it ended", i)
				}
			}
			w.release()
		}
		e.nothingLeft()
	}},
	// A free name is for the first entry alone, also while nobody listens there: strangers and later entries are refused.
	{name: "AFreeNameIsForTheFirstInTheQueue", needs: []need{queues}, run: func(e *env) {
		stranger, first, second := e.Driver(), e.Driver(), e.Driver()
		held, a, b := e.holds(stranger, "name"), e.long("name"), e.long("name")
		e.queue(first, a, "the first")
		e.queue(second, b, "the second")
		held.release() // from now on, a has it, or nobody but a gets it
		e.refused(stranger, e.long("name"), "a stranger")
		e.refused(second, b, "the second")
		e.grant(first, a)
		e.refused(second, b, "the second beside the first")
		e.release(first, a)
		e.refused(stranger, e.long("name"), "a stranger before the second")
		e.grant(second, b)
		e.release(second, b)
		e.free("name")
	}},
	// An entry lives for PlaceLife after its last look, and so does a grant that it has not heard of. Then whoever meets it drops
	// it, a waiter behind it or a stranger.
	{name: "ADeadEntryIsDroppedByWhoeverMeetsIt", needs: []need{queues}, run: func(e *env) {
		holder, life := e.Driver(), driver.PlaceLife(e.long("").TTL)
		dies := func(name string) (met func(at time.Time)) {
			held, c, began := e.holds(holder, name), e.long(name), time.Now()
			e.queue(e.Driver(), c, name) // and is never heard of again
			queued := time.Now()
			e.sleep(driver.Recheck(c.TTL) / 2)
			held.release()
			return func(at time.Time) {
				if lived := at.Sub(began); lived < life {
					e.Errorf("%s met an entry that was dropped %s after its last look", name, lived)
				}
				if lived := at.Sub(queued); lived > life+driver.Recheck(c.TTL)+e.pace(c)+e.slack() {
					e.Errorf("%s met an entry %s after its last look", name, lived)
				}
			}
		}
		waiter := dies("waiter")
		w := e.waits(e.Driver(), e.long("waiter"))
		stranger := dies("stranger")
		e.freeAfter("stranger", life, "the dead entry")
		stranger(time.Now())
		w.granted(life+driver.Recheck(w.c.TTL)+e.pace(w.c), "a waiter")
		waiter(w.at)
	}},
	// Whoever leaves the queue without the name leaves nothing there, and serves the next: before the holder's release, or after
	// it, when the name is for the one that leaves.
	{name: "AReleaseByOneWhoOwnsNothingLeavesTheQueue", needs: []need{queues}, run: func(e *env) {
		holder, first, second := e.Driver(), e.Driver(), e.Driver()
		for _, after := range []bool{false, true} {
			held, a := e.holds(holder, "name"), e.long("name")
			e.queue(first, a, "the first")
			next := e.waits(second, e.long("name"))
			if after {
				held.release() // to the first, who does not hear of it
				e.sleep(e.ttl / 20)
				e.ends(first, a, "leaving")
			} else {
				e.leaves(first, a, "leaving")
				if !e.owns(holder, held.c) {
					e.Fatal("that has freed the name")
				}
				held.release()
			}
			next.granted(e.hearing(next.c), "the next")
			next.release()
			e.free("name")
		}
	}},
	// Whoever finds a name free, as it expired and nobody says so, serves the first entry, and gets nothing itself.
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
}
