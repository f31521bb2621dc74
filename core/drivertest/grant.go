package drivertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// grantCases test Acquire, Release and Capabilities.
var grantCases = []testCase{
	// What a backend says that it can do is always the same: before, between and after its commands.
	{name: "CapabilitiesAreAlwaysTheSame", run: func(e *env) {
		if e.can.Backend == "" || e.can.Err != nil {
			e.Errorf("%+v", e.can)
		}
		if e.can.Block && !e.can.Fence {
			e.Error("blocks of no fences")
		}
		d := e.Driver()
		before := d.Capabilities()
		e.free("name")
		e.grant(d, e.claim("name"))
		if after := d.Capabilities(); after != before {
			e.Errorf("%+v, then %+v", before, after)
		}
	}},
	// An owner excludes others until its release. One is refused beside it, is told whose the name is, and does not stand in
	// the queue afterwards.
	{name: "AGrantExcludesOthersUntilItsRelease", run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		mine, theirs := e.lasting("name"), e.lasting("name")
		mine.Label = "mine, ☂"
		e.grant(a, mine)
		held := e.refusal(b, theirs, "a second owner")
		if held.Label != mine.Label || held.Remaining < 0 || held.Remaining > mine.TTL || held.Exact || held.Limit != 0 {
			e.Errorf("held says %+v", held)
		}
		e.grant(b, e.claim("another"))
		e.release(a, mine)
		e.free("name")
		e.grant(b, theirs)
	}},
	// A grant ends with its TTL, not before: then others get the name, and the owner's renewal and release come too late.
	{name: "AnExpiredGrantIsOver", run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		mine, theirs := e.claim("name"), e.claim("name")
		began := time.Now()
		e.grant(a, mine)
		e.eventually("the name expires", func() bool { _, err := b.Acquire(e.ctx, theirs); return err == nil })
		if lasted := time.Since(began); lasted < mine.TTL {
			e.Errorf("it lasted for %s", lasted)
		}
		if err := e.renew(a, mine); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("renewal after expiry: %v", err)
		}
		e.leaves(a, mine, "after expiry")
		e.release(b, theirs)
	}},
	// An owner that asks again, as after a lost reply, has its grant again for the full TTL: by Acquire or Wait, alone or with
	// others, also where there is no room for another one. One release ends all of it.
	{name: "AcquireIsIdempotentPerToken", run: func(e *env) {
		d, beside := e.Driver(), e.permit("limited", 2)
		owners := e.kinds(itself)
		owners["waits"] = e.lasting("waits")
		first := make(map[string]uint64)
		for what, c := range owners {
			c.TTL = e.ttl * 3 / 2 // the machine may stand still for a while
			owners[what] = c
			first[what] = e.grant(d, c).Fence
		}
		if e.can.Limit {
			e.grant(d, beside)
		}
		e.sleep(e.ttl * 3 / 4)
		asked := make(map[string]time.Time)
		for what, c := range owners {
			ask := d.Acquire
			if what == "waits" {
				ask = d.Wait
			}
			asked[what] = time.Now()
			again, err := e.again(c, ask)
			e.noError(err)
			if again.Fence < first[what] {
				e.Errorf("%s: fence %d after %d", what, again.Fence, first[what])
			}
		}
		e.sleep(e.ttl * 9 / 10)                                                                // past the first TTL, not the second
		within := func(what string) bool { return time.Since(asked[what]) < owners[what].TTL } // if not, the machine has stood still
		for what, c := range owners {
			if !e.owns(d, c) && within(what) {
				e.Errorf("%s: the second one has not set the full TTL", what)
			}
		}
		if e.can.Limit {
			e.release(d, beside)
		}
		for what, c := range owners {
			if err := d.Release(e.ctx, c); err != nil && within(what) {
				e.Errorf("%s: the release: %v", what, err)
			}
			e.free(c.Name)
		}
	}},
	// An owner that asks or renews for something else has that: another label and a longer TTL, and then the shorter one again.
	{name: "AnOwnerThatAsksForSomethingElseHasIt", run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		ways := map[string]func(c driver.Claim) error{
			"asks": func(c driver.Claim) (err error) { // less is promised while an earlier command is on its way
				e.eventually("a grant for the whole TTL", func() bool {
					var g driver.Grant
					g, err = e.again(c, d.Acquire)
					return err != nil || g.TTL == 0 || g.TTL >= c.TTL
				})
				return err
			},
			"renews": func(c driver.Claim) error { // nor is that while more nodes than a quorum have not answered the earlier one
				return e.answered(c, func(ctx context.Context) error { return d.Renew(ctx, []driver.Claim{c})[0] })
			},
		}
		owners, shorter := make(map[string]driver.Claim), make(map[string]time.Time)
		for what, set := range ways {
			c := e.claim(what)
			c.Label = "before"
			e.grant(d, c)
			long := c
			long.TTL, long.Label = 3*e.ttl, "after"
			e.noError(set(long))
			if held := e.refusal(other, e.claim(what), what); held.Label != "after" && what == "asks" {
				e.Errorf("the label is %q", held.Label)
			}
			owners[what] = c
		}
		e.sleep(e.ttl * 3 / 2)
		for what, c := range owners {
			e.refused(other, e.claim(what), what+": within the longer TTL")
			if !e.owns(d, c) {
				e.Fatalf("%s: it has kept the shorter TTL", what)
			}
			shorter[what] = time.Now()
			e.noError(ways[what](c))
		}
		for what, since := range shorter {
			e.freeAfter(what, e.ttl+e.ttl/50, "the shorter TTL")
			if lasted := time.Since(since); lasted < e.ttl {
				e.Errorf("%s: free after %s", what, lasted)
			}
		}
	}},
	// Only an owner's own token releases it, and once: no other one, not even one that is nearly the same.
	{name: "OnlyTheOwnerReleases", run: func(e *env) {
		d := e.Driver()
		for what, mine := range e.kinds(always("name")) {
			e.grant(d, mine)
			for _, token := range []string{token(), mine.Token[:len(mine.Token)-1], mine.Token + "x"} {
				for _, limit := range []int{mine.Limit, 0} {
					forged := mine
					forged.Token, forged.Limit = token, limit
					e.leaves(d, forged, what+": another token")
					if e.owns(d, forged) {
						e.Errorf("%s: another token owns it", what)
					}
				}
			}
			if !e.owns(d, mine) {
				e.Errorf("%s: the owner lost it", what)
			}
			e.release(d, mine)
			e.leaves(d, mine, "a second release")
			e.free("name")
		}
	}},
	// A call whose context has ended before it begins does nothing, and says so.
	{name: "ACallWhoseContextHasEndedDoesNothing", run: func(e *env) {
		d, c, other := e.Driver(), e.lasting("name"), e.claim("other")
		if _, err := d.Acquire(done(), c); !errors.Is(err, driver.ErrNotSent) {
			e.Errorf("acquire: %v", err)
		}
		if _, err := d.Wait(done(), c); !errors.Is(err, driver.ErrNotSent) {
			e.Errorf("wait: %v", err)
		}
		e.free("name") // it is not in the queue
		e.grant(d, c)
		if err := d.Release(done(), c); !errors.Is(err, driver.ErrNotSent) {
			e.Errorf("release: %v", err)
		}
		errs := d.Renew(done(), []driver.Claim{c, other})
		if len(errs) != 2 || !errors.Is(errs[0], driver.ErrNotSent) || !errors.Is(errs[1], driver.ErrNotSent) {
			e.Errorf("renewal: %v", errs)
		}
		if !e.owns(d, c) {
			e.Error("the owner lost it")
		}
	}},
	// Names that differ in any byte are different names, whatever the backend makes of them.
	{name: "NamesDoNotMeet", run: func(e *env) {
		d := e.Driver()
		names := []string{
			"a", "A", "a:b", "a:b:c", "a%3Ab", "ab", "a*", "a?", "a\\", "ü", "u\u0308", "[a]", "v1:fence", ":", "%",
			"done:a", strings.Repeat("x", 200), strings.Repeat("x", 199), strings.Repeat("日", 66),
		}
		for _, name := range names {
			e.grant(d, e.lasting(name))
		}
		for _, name := range names {
			e.refused(d, e.lasting(name), name)
		}
	}},
	// Whoever is refused, whatever it asks for, is told the owner's label byte by byte; a renewal leaves it.
	{name: "LabelsComeBackAsTheyWere", run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		owners := make(map[string]driver.Claim)
		for i, label := range []string{"", "host-1", "a b", "日本", "{x}", "'\"\\", strings.Repeat("l", driver.MaxLabel)} {
			c := e.lasting(strings.Repeat("n", i+1))
			c.Label = label
			e.grant(d, c)
			owners[label] = c
		}
		e.sleep(e.Slow) // where a quorum decides, a node may be late with the grant
		for _, c := range owners {
			e.seesLabel(other, c)
			e.noError(e.renew(d, c))
			e.seesLabel(other, c)
			e.release(d, c)
		}
	}},
	// Of two processes some try and others wait, for a name of which each kind wants something else. Kinds do not meet, and no more of
	// one than its limit; fences grow. Some of those who may meet do.
	{name: "KindsDoNotMeetUnderConcurrency", crowd: true, run: func(e *env) {
		var (
			wg           sync.WaitGroup
			mu           sync.Mutex // protects what follows: those inside by their limits, and the last fence
			inside, most = make(map[int]int), make(map[int]int)
			last         uint64
		)
		count := func(c driver.Claim, n int, fence uint64) {
			mu.Lock()
			defer mu.Unlock()
			inside[c.Limit] += n
			most[c.Limit] = max(most[c.Limit], inside[c.Limit])
			others := -inside[c.Limit]
			for _, n := range inside {
				others += n
			}
			if others > 0 || !c.Shared() && inside[c.Limit] > max(1, c.Limit) {
				e.Errorf("limits and how many hold by them: %v", inside)
			}
			if c.Exclusive() && n > 0 && e.can.Fence && fence <= last {
				e.Errorf("fence %d after %d", fence, last)
			}
			last = max(last, fence)
		}
		turn := func(d driver.Driver, c driver.Claim, g driver.Grant) {
			count(c, 1, g.Fence)
			if c.Exclusive() {
				time.Sleep(50 * time.Microsecond)
			} else {
				time.Sleep(e.ttl/200 + e.Slow/2)
			}
			count(c, -1, 0)
			if err := d.Release(e.ctx, c); err != nil {
				e.Errorf("release: %v", err)
			}
		}
		waits := func(w *waiter) {
			for range e.rounds(25) {
				if <-w.over; w.err != nil {
					e.Errorf("wait: %v", w.err)
					return
				}
				turn(w.d, w.c, w.g)
				w = e.begins(w.d, e.permit("name", w.c.Limit))
			}
			w.cancel()
			<-w.over
			_ = w.d.Release(e.ctx, w.c)
		}
		drivers := []driver.Driver{e.Driver(), e.Driver()}
		held := e.holds(drivers[0], "name")
		groups := [][]int{{0, 0, 0}}
		if e.can.Shared {
			groups = append(groups, slices.Repeat([]int{driver.Readers}, 3))
		}
		if e.can.Limit {
			groups = append(groups, slices.Repeat([]int{3}, 5))
		}
		for _, group := range groups {
			var queued sync.WaitGroup // one kind behind the other, so that some do meet
			for i, limit := range group {
				ready := make(chan *waiter, 1)
				queued.Go(func() { ready <- e.waits(drivers[i%2], e.permit("name", limit)) })
				wg.Go(func() { waits(<-ready) })
			}
			queued.Wait()
		}
		for i := range 3 {
			wg.Go(func() {
				for range e.rounds(100) {
					c, d := e.lasting("name"), drivers[i%2]
					if g, err := e.again(c, d.Acquire); err == nil {
						turn(d, c, g)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		held.release()
		wg.Wait()
		for limit, n := range most {
			if e.can.Queue && limit != 0 && n < 2 {
				e.Errorf("no two have met: %v", most)
			}
		}
		e.nothingLeft()
	}},
}

// kinds are claims that outlast the case, one of each kind that the backend knows. named gives each its name.
func (e *env) kinds(named func(kind string) string) map[string]driver.Claim {
	all := map[string]driver.Claim{"exclusive": e.lasting(named("exclusive"))}
	if e.can.Shared {
		all["shared"] = e.reader(named("shared"))
	}
	if e.can.Limit {
		all["limited"] = e.permit(named("limited"), 2)
	}
	return all
}

// itself has each kind's name be that of the kind, and always one for all.
func itself(kind string) string              { return kind }
func always(name string) func(string) string { return func(string) string { return name } }

// seesLabel fails the case unless claims of all kinds are told the owner's label.
func (e *env) seesLabel(d driver.Driver, owner driver.Claim) {
	e.Helper()
	kinds := e.kinds(always(owner.Name))
	if e.can.Dedup {
		kinds["with a marker"] = e.marked(owner.Name, "pay")
	}
	for what, c := range kinds {
		if held := e.refusal(d, c, what); held.Label != owner.Label {
			e.Errorf("%s: the label is %q, not %q", what, held.Label, owner.Label)
		}
	}
	var many sync.WaitGroup // whose commands may be merged
	for range 16 {
		many.Go(func() {
			_, err := d.Acquire(e.ctx, e.claim(owner.Name))
			if held, ok := errors.AsType[*driver.Held](err); !ok || held.Label != owner.Label {
				e.Errorf("one of many: %v %+v", err, held)
			}
		})
	}
	many.Wait()
}
