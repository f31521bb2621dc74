package drivertest

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// contractCases test the sentences of the driver package's documentation.
var contractCases = []testCase{
	{name: "AGrantExcludesOthersUntilItsRelease", run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		mine, theirs := e.writer("name"), e.writer("name")
		mine.Label = "mine, ☂"
		e.grant(a, mine)
		_, err := b.Acquire(e.Context(), theirs)
		held, ok := errors.AsType[*driver.Held](err)
		if !ok {
			e.Fatalf("second acquire: %v", err)
		}
		if held.Label != mine.Label || held.Remaining <= 0 || held.Remaining > mine.TTL {
			e.Errorf("held says %+v", held)
		}
		e.grant(b, e.claim("another"))
		e.noError(a.Release(e.Context(), mine))
		e.grant(b, theirs)
	}},
	{name: "AnExpiredGrantIsOver", run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		mine, theirs := e.claim("name"), e.claim("name")
		e.grant(a, mine)
		e.eventually("the name expires", func() bool { _, err := b.Acquire(e.Context(), theirs); return err == nil })
		if errs := a.Renew(e.Context(), []driver.Claim{mine}); !errors.Is(errs[0], driver.ErrNotOwner) {
			e.Errorf("renewal after expiry: %v", errs[0])
		}
		if err := a.Release(e.Context(), mine); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("release after expiry: %v", err)
		}
		e.noError(b.Release(e.Context(), theirs))
	}},
	{name: "AcquireIsIdempotentPerToken", run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		first := e.grant(d, c)
		time.Sleep(e.ttl / 2)
		again := e.grant(d, c)
		if again.Fence < first.Fence {
			e.Errorf("fence %d after %d", again.Fence, first.Fence)
		}
		time.Sleep(e.ttl * 6 / 10) // past the first TTL, not the second
		if errs := d.Renew(e.Context(), []driver.Claim{c}); errs[0] != nil {
			e.Errorf("the second acquire has not set the full TTL: %v", errs[0])
		}
	}},
	{name: "RenewalGivesTheFullTTLAgain", run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		e.grant(d, c)
		for range 4 {
			time.Sleep(e.ttl / 2)
			if errs := d.Renew(e.Context(), []driver.Claim{c}); len(errs) != 1 || errs[0] != nil {
				e.Fatalf("renewal: %v", errs)
			}
		}
	}},
	{name: "RenewalWithoutTTLOnlyVerifies", run: func(e *env) {
		d, c, other := e.Driver(), e.claim("name"), e.Driver()
		e.grant(other, e.claim("another")) // it is connected
		e.grant(d, c)
		verify := c
		verify.TTL = 0
		for range 2 { // and leaves the lease as it is
			e.noError(d.Renew(e.Context(), []driver.Claim{verify})[0])
		}
		if _, err := other.Acquire(e.Context(), e.claim("name")); err == nil {
			e.Error("verification has freed the name")
		}
		e.eventually("the name expires under verification", func() bool {
			return errors.Is(d.Renew(e.Context(), []driver.Claim{verify})[0], driver.ErrNotOwner)
		})
	}},
	{name: "RenewalAnswersEachClaimForItself", run: func(e *env) {
		d := e.Driver()
		mine, gone, theirs := e.writer("mine"), e.writer("gone"), e.writer("theirs")
		e.grant(d, mine)
		e.grant(d, theirs)
		forged := theirs
		forged.Token = token()
		errs := d.Renew(e.Context(), []driver.Claim{gone, mine, forged, mine, theirs})
		for i, want := range []error{driver.ErrNotOwner, nil, driver.ErrNotOwner, nil, nil} {
			if !errors.Is(errs[i], want) {
				e.Errorf("claim %d: %v, not %v", i, errs[i], want)
			}
		}
		if errs := d.Renew(e.Context(), nil); len(errs) != 0 {
			e.Errorf("no claims: %v", errs)
		}
	}},
	{name: "OnlyTheOwnerReleases", run: func(e *env) {
		d, mine := e.Driver(), e.writer("name")
		e.grant(d, mine)
		for _, token := range []string{token(), mine.Token[:len(mine.Token)-1], mine.Token + "x", ""} {
			forged := mine
			forged.Token = token
			if err := d.Release(e.Context(), forged); !errors.Is(err, driver.ErrNotOwner) {
				e.Errorf("release with token %q: %v", token, err)
			}
		}
		if errs := d.Renew(e.Context(), []driver.Claim{mine}); errs[0] != nil {
			e.Errorf("the owner lost it: %v", errs[0])
		}
	}},
	{name: "ACallWhoseContextHasEndedDoesNothing", run: func(e *env) {
		d, c := e.Driver(), e.writer("name")
		if _, err := d.Acquire(done(), c); !errors.Is(err, driver.ErrNotSent) {
			e.Errorf("acquire: %v", err)
		}
		e.grant(d, c)
		if err := d.Release(done(), c); !errors.Is(err, driver.ErrNotSent) {
			e.Errorf("release: %v", err)
		}
		if errs := d.Renew(done(), []driver.Claim{c}); !errors.Is(errs[0], driver.ErrNotSent) {
			e.Errorf("renewal: %v", errs[0])
		}
		e.noError(d.Renew(e.Context(), []driver.Claim{c})[0])
	}},
	{name: "NamesDoNotMeet", run: func(e *env) {
		d := e.Driver()
		names := []string{
			"a", "A", "a:b", "a:b:c", "a%3Ab", "ab", "a*", "a?", "a\\", "ü", "u\u0308", "[a]", "v1:fence", ":", "%",
			"done:a", strings.Repeat("x", 200), strings.Repeat("x", 199), strings.Repeat("日", 66),
		}
		for _, name := range names {
			c := e.claim(name)
			c.TTL = time.Minute
			e.grant(d, c)
		}
		for _, name := range names {
			if _, err := d.Acquire(e.Context(), e.claim(name)); err == nil {
				e.Errorf("%q was granted twice", name)
			}
		}
	}},
	{name: "LabelsComeBackAsTheyWere", run: func(e *env) {
		d := e.Driver()
		for i, label := range []string{"", "host-1", "a b", "日本", "{x}", "'\"\\", strings.Repeat("l", driver.MaxLabel)} {
			name := strings.Repeat("n", i+1)
			c := e.claim(name)
			c.Label = label
			e.grant(d, c)
			_, err := d.Acquire(e.Context(), e.claim(name))
			if held, ok := errors.AsType[*driver.Held](err); !ok || held.Label != label {
				e.Errorf("label %q: %v", label, err)
			}
			e.noError(d.Release(e.Context(), c))
		}
	}},
	{name: "LabelsAreTheSameAfterARenewal", run: func(e *env) {
		d, mine := e.Driver(), e.claim("name")
		mine.Label, mine.TTL = "host-1", time.Minute
		e.grant(d, mine)
		e.noError(d.Renew(e.Context(), []driver.Claim{mine})[0])
		e.seesLabel(d, mine)
		if d.Capabilities().Detach {
			e.noError(d.Release(e.Context(), handedOff(mine, otherHandoff, time.Minute)))
			e.seesLabel(d, mine)
		}
	}},
	{name: "FencesGrowOnEveryPath", needs: fences, run: func(e *env) {
		a, b := e.Driver(), e.Driver()
		var last uint64
		next := func(how string, g driver.Grant) {
			e.Helper()
			if g.Fence <= last || g.Fence > 1<<53 {
				e.Fatalf("%s: fence %d after %d", how, g.Fence, last)
			}
			last = g.Fence
		}
		for range 300 {
			c := e.claim("name")
			next("after a release", e.grant(a, c))
			e.noError(a.Release(e.Context(), c))
		}
		c := e.claim("name")
		next("another process", e.grant(b, c))
		if g := e.grant(b, c); g.Fence < last {
			e.Fatalf("asked again: fence %d after %d", g.Fence, last)
		} else {
			last = g.Fence
		}
		e.noError(b.Release(e.Context(), c))
		next("after asking again", e.grant(a, e.claim("name"))) // and left to expire
		e.eventually("the name expires", func() bool {
			g, err := b.Acquire(e.Context(), e.claim("name"))
			if err == nil {
				next("after an expiry", g)
			}
			return err == nil
		})
	}},
	{name: "FencesGrowAboveAFloor", needs: floors, run: func(e *env) {
		d := e.Driver()
		const ahead = 3600 * 1e6 // an hour of a clock in microseconds
		free, owned := e.claim("name"), e.claim("name")
		free.Floor = e.grant(d, e.claim("other")).Fence + ahead
		if g := e.grant(d, free); g.Fence < free.Floor {
			e.Errorf("a free name: fence %d below %d", g.Fence, free.Floor)
		}
		e.noError(d.Release(e.Context(), free))
		owned.Floor = e.grant(d, owned).Fence + ahead
		e.grant(d, owned) // by who owns it
		e.noError(d.Release(e.Context(), owned))
		if g := e.grant(e.Driver(), e.claim("name")); g.Fence <= owned.Floor {
			e.Errorf("later: fence %d after %d", g.Fence, owned.Floor)
		}
	}},
	{name: "OneOwnerAtATimeUnderConcurrency", crowd: true, run: hammer},
}

// seesLabel fails the case unless claims of every kind are refused with the owner's label.
func (e *env) seesLabel(d driver.Driver, owner driver.Claim) {
	e.Helper()
	kinds := map[string]driver.Claim{"exclusive": e.claim(owner.Name)}
	if _, ok := d.(queuer); ok {
		kinds["in line"] = e.place()
	}
	if can := d.Capabilities(); can.Shared {
		kinds["shared"] = e.reader(owner.Name)
	}
	if can := d.Capabilities(); can.Limit {
		kinds["limited"] = e.permit(owner.Name, 2)
	}
	for what, c := range kinds {
		if held := e.refusal(d, c, what); held.Label != owner.Label {
			e.Errorf("%s: the label is %q, not %q", what, held.Label, owner.Label)
		}
	}
	var many sync.WaitGroup // whose commands may be merged
	for range 32 {
		many.Go(func() {
			_, err := d.Acquire(e.Context(), e.claim(owner.Name))
			if held, ok := errors.AsType[*driver.Held](err); !ok || held.Label != owner.Label {
				e.Errorf("one of many: %v %+v", err, held)
			}
		})
	}
	many.Wait()
}

// hammer has many goroutines take the same name from two processes, and counts those
// inside.
func hammer(e *env) {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		inside int
		last   uint64
		grants int
	)
	drivers := []driver.Driver{e.Driver(), e.Driver()}
	fenced := drivers[0].Capabilities().Fence
	for i := range 8 {
		d := drivers[i%2]
		wg.Go(func() {
			for range 40 {
				c := e.claim("name")
				c.TTL = 30 * time.Second
				g, err := d.Acquire(e.Context(), c)
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				mu.Lock()
				inside++
				grants++
				if inside != 1 {
					e.Errorf("%d owners at once", inside)
				}
				if fenced && g.Fence <= last {
					e.Errorf("fence %d after %d", g.Fence, last)
				}
				last = g.Fence
				mu.Unlock()
				time.Sleep(50 * time.Microsecond)
				mu.Lock()
				inside--
				mu.Unlock()
				if err := d.Release(e.Context(), c); err != nil {
					e.Errorf("release: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if grants == 0 {
		e.Error("nobody got it")
	}
}
