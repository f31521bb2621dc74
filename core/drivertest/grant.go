package drivertest

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// grantCases test Acquire, Release and Capabilities.
var grantCases = []testCase{
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
		e.grant(b, theirs)
	}},
	{name: "ARefusedAcquireLeavesNothingInTheQueue", run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		mine, theirs := e.lasting("name"), e.lasting("name")
		e.grant(a, mine)
		e.refused(b, theirs, "a second owner")
		e.release(a, mine)
		e.free("name")
	}},
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
	{name: "AcquireIsIdempotentPerToken", run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		first := e.grant(d, c)
		e.sleep(e.ttl / 2)
		if again := e.grant(d, c); again.Fence < first.Fence {
			e.Errorf("fence %d after %d", again.Fence, first.Fence)
		}
		e.sleep(e.ttl * 6 / 10) // past the first TTL, not the second
		if !e.owns(d, c) {
			e.Error("the second acquire has not set the full TTL")
		}
		e.release(d, c) // once is enough
		e.free("name")
	}},
	{name: "AnOwnerThatAsksForSomethingElseHasIt", run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		c.Label = "before"
		e.grant(d, c)
		long := c
		long.TTL, long.Label = 3*e.ttl, "after"
		e.grant(d, long)
		if held := e.refusal(e.Driver(), e.claim("name"), "another"); held.Label != "after" {
			e.Errorf("the label is %q", held.Label)
		}
		e.sleep(e.ttl * 3 / 2)
		if !e.owns(d, c) {
			e.Fatal("it has kept the shorter TTL")
		}
		e.grant(d, c)
		if took := e.freeAfter(e.ttl+e.ttl/50, "the shorter TTL"); e.virtual && took < e.ttl {
			e.Errorf("free after %s", took)
		}
	}},
	{name: "OnlyTheOwnerReleases", run: func(e *env) {
		d, mine := e.Driver(), e.lasting("name")
		e.grant(d, mine)
		for _, token := range []string{token(), mine.Token[:len(mine.Token)-1], mine.Token + "x"} {
			forged := mine
			forged.Token = token
			e.leaves(d, forged, "another token")
		}
		if !e.owns(d, mine) {
			e.Error("the owner lost it")
		}
		e.release(d, mine)
		e.leaves(d, mine, "a second release")
		e.free("name")
	}},
	{name: "AReleaseCleansUpBehindALateAcquire", run: func(e *env) {
		d, c := e.Driver(), e.lasting("name")
		e.leaves(d, c, "clean-up that overtakes")
		e.grant(d, c) // late: its token is over
		e.release(d, c)
		e.free("name")
	}},
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
	{name: "LabelsComeBackAsTheyWere", run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		for i, label := range []string{"", "host-1", "a b", "日本", "{x}", "'\"\\", strings.Repeat("l", driver.MaxLabel)} {
			c := e.lasting(strings.Repeat("n", i+1))
			c.Label = label
			e.grant(d, c)
			e.seesLabel(other, c)
			e.noError(e.renew(d, c))
			e.seesLabel(other, c)
			e.release(d, c)
		}
	}},
	{name: "OneOwnerAtATimeUnderConcurrency", crowd: true, run: func(e *env) {
		e.hammer(func(d driver.Driver, c driver.Claim) (driver.Grant, error) { return d.Acquire(e.ctx, c) })
	}},
}

// seesLabel fails the case unless claims of all kinds are told the owner's label.
func (e *env) seesLabel(d driver.Driver, owner driver.Claim) {
	e.Helper()
	kinds := map[string]driver.Claim{"exclusive": e.claim(owner.Name)}
	if e.can.Shared {
		kinds["shared"] = e.reader(owner.Name)
	}
	if e.can.Limit {
		kinds["limited"] = e.permit(owner.Name, 2)
	}
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

// hammer has many goroutines of two processes take the same name, and counts those inside.
func (e *env) hammer(take func(d driver.Driver, c driver.Claim) (driver.Grant, error)) {
	var (
		wg             sync.WaitGroup
		mu             sync.Mutex
		inside, grants int
		last           uint64
	)
	drivers := []driver.Driver{e.Driver(), e.Driver()}
	for i := range 8 {
		d := drivers[i%2]
		wg.Go(func() {
			for range e.rounds(25) {
				c := e.lasting("name")
				g, err := take(d, c)
				if err != nil {
					_ = d.Release(e.ctx, c) // it may be in the queue
					time.Sleep(time.Millisecond)
					continue
				}
				mu.Lock()
				inside++
				grants++
				if inside != 1 {
					e.Errorf("%d owners at once", inside)
				}
				if e.can.Fence && g.Fence <= last {
					e.Errorf("fence %d after %d", g.Fence, last)
				}
				last = g.Fence
				mu.Unlock()
				time.Sleep(50 * time.Microsecond)
				mu.Lock()
				inside--
				mu.Unlock()
				if err := d.Release(e.ctx, c); err != nil {
					e.Errorf("release: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if grants == 0 {
		e.Error("nobody got it")
	}
	e.nothingLeft()
}
