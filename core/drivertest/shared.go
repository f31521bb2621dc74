package drivertest

import (
	"errors"
	"sync"
	"sync/atomic"
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

// sharedCases test readers and writers.
var sharedCases = []testCase{
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
	{name: "EachReaderHasItsOwnTime", needs: []need{shares}, run: func(e *env) {
		d := e.Driver()
		short, long := e.brief(e.reader("name")), e.reader("name")
		e.grant(d, long)
		e.grant(d, short) // which does not cut the other's time
		e.eventually("the short one ends", func() bool { return !e.owns(d, short) })
		if !e.owns(d, long) {
			e.Error("both have ended")
		}
		e.leaves(d, short, "after its time")
		e.refused(d, e.claim("name"), "a writer beside the one that lives")
		short = e.brief(e.reader("name"))
		e.grant(d, short)
		e.release(d, long) // its time is no longer what the name is taken for
		e.freeAfter(e.ttl+e.ttl/50, "the last reader has died")
	}},
	{name: "AReadersRenewalGivesTheFullTTLAgain", needs: []need{shares}, run: func(e *env) {
		d, c := e.Driver(), e.brief(e.reader("name"))
		e.grant(d, c)
		for range 4 {
			e.sleep(e.ttl / 2)
			e.noError(e.renew(d, c))
			e.refused(d, e.claim("name"), "a writer")
		}
		e.eventually("it expires under verification", func() bool { return !e.owns(d, c) })
		e.eventually("the name is free", func() bool { _, err := d.Acquire(e.ctx, e.claim("name")); return err == nil })
	}},
	{name: "AReadersAcquireIsIdempotentPerToken", needs: []need{shares}, run: func(e *env) {
		d, c := e.Driver(), e.brief(e.reader("name"))
		first := e.grant(d, c)
		e.sleep(e.ttl / 2)
		if again := e.grant(d, c); again.Fence < first.Fence {
			e.Errorf("fence %d after %d", again.Fence, first.Fence)
		}
		e.sleep(e.ttl * 6 / 10)
		if !e.owns(d, c) {
			e.Error("the second acquire has not set the full TTL")
		}
		e.release(d, c) // once is enough
		e.free("name")
	}},
	{name: "AReadersFenceIsNotOlderThanTheLastWriter", needs: []need{shares, fenced}, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		var last uint64
		for range 10 {
			writer := e.lasting("name")
			if f := e.grant(a, writer).Fence; f <= last {
				e.Errorf("writer: fence %d after %d", f, last)
			} else {
				last = f
			}
			e.release(a, writer)
			one, two := e.reader("name"), e.reader("name")
			f, g := e.grant(a, one).Fence, e.grant(b, two).Fence
			if f <= last || g <= last || f > 1<<53 || g > 1<<53 {
				e.Errorf("readers: fences %d and %d after a writer's %d", f, g, last)
			}
			last = max(f, g)
			e.release(a, one)
			e.release(b, two)
		}
	}},
	{name: "ReadersDoNotStarveAWriterThatWaits", needs: []need{shares, queues}, run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		one, writer, late := e.reader("name"), e.lasting("name"), e.reader("name")
		e.grant(d, one)
		w := e.waits(other, writer)
		e.refused(d, e.reader("name"), "a reader after a writer that waits")
		next := e.waits(e.Driver(), late)
		if next.ended() {
			e.Fatal("a reader that waits came before the writer")
		}
		e.release(d, one)
		w.granted(e.hearing(writer), "the writer")
		if next.ended() {
			e.Fatal("a reader beside the writer")
		}
		e.release(other, writer)
		next.granted(e.hearing(late), "the reader behind it")
	}},
	{name: "ReadersThatWaitComeInTogether", needs: []need{shares, queues}, run: func(e *env) {
		d, writer := e.Driver(), e.lasting("name")
		e.grant(d, writer)
		var all []*waiter
		for range 3 {
			all = append(all, e.waits(e.Driver(), e.reader("name")))
		}
		last := e.waits(e.Driver(), e.lasting("name"))
		e.release(d, writer)
		for _, w := range all { // and none of them releases
			w.granted(2*e.hearing(w.c)+e.ttl/100, "a reader")
		}
		if last.ended() {
			e.Error("the writer came in, too")
		}
		last.stop("the writer")
	}},
	{name: "ReadersBesideAWriterThatGivesUpComeIn", needs: []need{shares, queues}, run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		one, writer, late := e.reader("name"), e.lasting("name"), e.reader("name")
		e.grant(d, one)
		e.queue(other, writer, "the writer")
		next := e.waits(e.Driver(), late)
		e.leaves(other, writer, "leaving")
		next.granted(e.hearing(late)+e.ttl/100, "the reader behind it")
	}},
	{name: "OnlyAReaderReleasesItself", needs: []need{shares}, run: func(e *env) {
		d, c := e.Driver(), e.reader("name")
		e.grant(d, c)
		for _, forged := range []driver.Claim{e.reader("name"), e.claim("name")} {
			e.leaves(d, forged, "another")
			if e.owns(d, forged) {
				e.Error("another owns it")
			}
		}
		if !e.owns(d, c) {
			e.Error("it has lost the name")
		}
		e.release(d, c)
		e.leaves(d, c, "another release")
		e.free("name")
	}},
	{name: "AForeignValueStopsReaders", needs: []need{shares, foreign}, run: func(e *env) {
		d, c := e.Driver(), e.reader("name")
		e.Overwrite("name")
		e.refused(d, c, "a reader beside other software")
		e.Delete("name")
		e.grant(d, c)
		e.Overwrite("name")
		if e.owns(d, c) {
			e.Error("it owns what was overwritten")
		}
		e.leaves(d, c, "what was overwritten")
		e.refused(d, e.reader("name"), "the foreign value is gone")
		e.Delete("name")
		e.grant(d, e.reader("name"))
		if e.owns(d, c) {
			e.Error("it owns what others have now")
		}
	}},
	{name: "AReaderCompletes", needs: []need{shares, dedups}, run: func(e *env) {
		d, c := e.Driver(), e.marked("name", "pay")
		c.Limit = driver.Readers
		e.grant(d, c)
		e.release(d, c)
		for _, limit := range []int{driver.Readers, 0} {
			again := e.marked("name", "pay")
			again.Limit = limit
			e.duplicate(d, again, "the next")
		}
	}},
	{name: "ReadersMeetNoWriter", needs: []need{shares}, crowd: true, run: func(e *env) {
		drivers := []driver.Driver{e.Driver(), e.Driver()}
		var wg sync.WaitGroup
		var readers, writers, together atomic.Int32
		for i := range 8 {
			d := drivers[i%2]
			wg.Go(func() {
				for range 6 {
					c := e.lasting("name")
					if i%4 != 0 {
						c = e.reader("name")
					}
					if _, err := e.wait(d, c); err != nil {
						e.Errorf("wait: %v", err)
						return
					}
					if c.Shared() {
						if n := readers.Add(1); n > together.Load() {
							together.Store(n)
						}
						if writers.Load() != 0 {
							e.Error("a reader beside a writer")
						}
						time.Sleep(e.ttl/100 + e.Slow/2)
						readers.Add(-1)
					} else {
						if writers.Add(1) != 1 || readers.Load() != 0 {
							e.Error("a writer is not alone")
						}
						time.Sleep(time.Millisecond)
						writers.Add(-1)
					}
					if err := d.Release(e.ctx, c); err != nil {
						e.Errorf("release: %v", err)
					}
				}
			})
		}
		wg.Wait()
		if together.Load() < 2 && e.can.Queue {
			e.Error("no two readers have met")
		}
		e.nothingLeft()
	}},
}
