package drivertest

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// reader makes a shared claim that outlasts the case.
func (e *env) reader(name string) driver.Claim {
	c := e.lasting(name)
	c.Limit = driver.Readers
	return c
}

// brief is c for one TTL of the case.
func (e *env) brief(c driver.Claim) driver.Claim {
	c.TTL = e.ttl
	return c
}

// sharedCases test readers and writers, and all who share a name.
var sharedCases = []testCase{
	// Readers share a name, writers do not: each kind keeps the other out until the last of it has released.
	{name: "ReadersShareAndWritersDoNot", needs: []need{shares}, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		one, two, writer := e.reader("name"), e.reader("name"), e.lasting("name")
		one.Label = "one"
		e.grant(a, one)
		e.grant(b, two)
		var many sync.WaitGroup // whose commands may be merged
		for range 16 {
			many.Go(func() {
				_, err := b.Acquire(e.ctx, e.claim("name"))
				held, ok := errors.AsType[*driver.Held](err)
				if !ok || held.Label != "" || held.Exact || held.Remaining < 0 || held.Remaining > one.TTL {
					e.Errorf("a writer beside readers: %v %+v", err, held)
				}
			})
		}
		many.Wait()
		e.release(a, one)
		e.refused(a, writer, "a writer beside the last reader")
		e.release(b, two)
		e.grant(a, writer)
		e.refused(b, e.reader("name"), "a reader beside a writer")
		e.release(a, writer)
		e.grant(b, e.reader("name"))
	}},
	// Of those who share a name each has its own time: it dies alone, whatever others renew, its place comes free, and the name is
	// not kept for longer than the last of them lives.
	{name: "EachOfThoseWhoShareHasItsOwnTime", needs: []need{shares, limits}, run: func(e *env) {
		d, all := e.Driver(), e.kinds(itself)
		delete(all, "exclusive")
		short := make(map[string]driver.Claim)
		again := func(what string) {
			c := e.brief(all[what])
			c.Token = token()
			short[what] = c
			e.grant(d, c)
		}
		for what, long := range all {
			e.grant(d, long)
			again(what)
			if held := e.refusal(d, e.permit(what, 2), "one too many"); what == "limited" && held.Remaining > e.ttl {
				e.Errorf("the first comes free in %s", held.Remaining)
			}
		}
		for what, c := range short {
			e.eventually(what+": the short one ends", func() bool {
				_ = e.renew(d, all[what])
				return !e.owns(d, c)
			})
		}
		for what, long := range all {
			if !e.owns(d, long) {
				e.Errorf("%s: both have ended", what)
			}
			e.leaves(d, short[what], "after its time")
			e.refused(d, e.claim(what), "a writer beside the one that lives")
			again(what)
			e.refused(d, e.permit(what, 2), "one too many again")
			e.release(d, long) // its time is no longer what the name is taken for
		}
		began := time.Now()
		for what := range all {
			e.freeAfter(what, e.ttl+e.ttl/50-time.Since(began), "the last one has died")
		}
	}},
	// Readers who come later wait behind a writer that waits. When it has released, they come in together, and only those
	// before the next writer.
	{name: "ReadersDoNotStarveAWriterThatWaits", needs: []need{shares, queues}, run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		one := e.reader("name")
		e.grant(d, one)
		w := e.waits(other, e.lasting("name"))
		e.refused(d, e.reader("name"), "a reader after a writer that waits")
		var late []*waiter
		for range 3 {
			late = append(late, e.waits(e.Driver(), e.reader("name")))
		}
		last := e.waits(e.Driver(), e.lasting("name"))
		none := func(when string) {
			for _, next := range append(late, last) {
				if next.ended() {
					e.Fatalf("one who came later has the name %s the writer", when)
				}
			}
		}
		none("before")
		e.release(d, one)
		w.granted(e.hearing(w.c), "the writer")
		none("beside")
		w.release()
		for _, next := range late { // and none of them releases
			next.granted(2*e.hearing(next.c)+e.ttl/100, "a reader")
		}
		last.stop("the next writer")
	}},
	// A writer that leaves the queue lets in the readers behind it, beside those who have the name.
	{name: "ReadersBesideAWriterThatGivesUpComeIn", needs: []need{shares, queues}, run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		one, writer, late := e.reader("name"), e.lasting("name"), e.reader("name")
		e.grant(d, one)
		e.queue(other, writer, "the writer")
		next := e.waits(e.Driver(), late)
		e.leaves(other, writer, "leaving")
		next.granted(e.hearing(late)+e.ttl/100, "the reader behind it")
	}},
}
