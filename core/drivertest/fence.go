package drivertest

import (
	"github.com/holdfast-go/holdfast/core/driver"
)

// fenceCases test fences and blocks of them.
var fenceCases = []testCase{
	// Fences grow on every path on which a name goes from one owner to the next. No fence of a block is given to anybody else, and a
	// block asked for again is not smaller.
	{name: "FencesGrowOnEveryPath", needs: []need{fenced}, run: func(e *env) {
		a, b, f, sizes := e.Driver(), e.Driver(), fences{e: e}, []int{1}
		if e.can.Block {
			sizes = append(sizes, driver.MaxFences)
		}
		asking := func(c driver.Claim, fences int) driver.Claim {
			c.Fences = fences
			return c
		}
		for _, n := range sizes {
			for range 100 {
				c := asking(e.claim("name"), n)
				f.next("after a release", e.grant(a, c), n)
				e.release(a, c)
			}
			c := asking(e.long("name"), n)
			f.next("another process", e.grant(b, c), n)
			f.again("asked again", e.grant(b, c))
			w := e.waits(a, asking(e.long("name"), min(n, 7)))
			e.release(b, c)
			f.next("waited", w.granted(driver.Recheck(w.c.TTL), "the waiter"), min(n, 7))
			w.release()
			f.next("after the waiter", e.grant(b, asking(e.claim("name"), n)), n) // and left to expire
			last := e.claim("name")
			e.eventually("the name expires", func() bool {
				g, err := b.Acquire(e.ctx, last)
				if err == nil {
					f.next("after an expiry", g, 1)
				}
				return err == nil
			})
			e.release(b, last)
		}
	}},
	// Whoever is granted a name while others are in the queue has a small block, and who is alone a large one.
	{name: "BlocksAreSmallWhileOthersAreInTheQueue", needs: []need{blocks, queues}, run: func(e *env) {
		holder, first, second := e.Driver(), e.Driver(), e.Driver()
		f, held, a, b := fences{e: e}, e.long("name"), e.long("name"), e.long("name")
		a.Fences, b.Fences = driver.MaxFences, driver.MaxFences
		e.grant(holder, held)
		w, next := e.waits(first, a), e.waits(second, b)
		e.release(holder, held)
		g := w.granted(driver.Recheck(a.TTL)+e.pace(a), "the first")
		f.next("beside others", g, driver.FencesBesideOthers)
		e.release(first, a)
		g = next.granted(driver.Recheck(b.TTL), "the second")
		f.next("alone", g, driver.MaxFences)
		if g.Fences <= driver.FencesBesideOthers {
			e.Errorf("alone it has %d fences", g.Fences)
		}
	}},
	// Readers have a fence that is larger than the last writer's, and smaller than the next one's.
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
}

// fences checks that no fence is given twice.
type fences struct {
	e    *env
	last uint64
}

func (f *fences) next(how string, g driver.Grant, most int) {
	f.e.Helper()
	if g.Fence <= f.last || g.Fence > 1<<53 || g.Fences < 0 || g.Fences > most {
		f.e.Fatalf("%s: %d fences from %d on, after %d", how, g.Fences, g.Fence, f.last)
	}
	f.last = g.Fence + uint64(max(1, g.Fences)) - 1
}

// again is for a grant of the same token: it may be of the same fences.
func (f *fences) again(how string, g driver.Grant) {
	f.e.Helper()
	last := g.Fence + uint64(max(1, g.Fences)) - 1
	if last < f.last {
		f.e.Fatalf("%s: %d fences from %d on, after %d", how, g.Fences, g.Fence, f.last)
	}
	f.last = last
}
