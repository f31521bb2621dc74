package drivertest

import (
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// inspector is a backend that is a driver.Inspector.
type inspector interface {
	driver.Driver
	driver.Inspector
}

func inspecting(run func(e *env, i inspector)) func(*env) {
	return func(e *env) {
		i, ok := e.Driver().(inspector)
		if !ok {
			e.lacks("it cannot tell who holds what")
		}
		run(e, i)
	}
}

// look returns what is known of "name".
func (e *env) look(i inspector) driver.LeaseInfo {
	e.Helper()
	info, err := i.Inspect(e.Context(), "name")
	e.noError(err)
	return info
}

// evict takes the name from the holder that is meant. It fails the case unless the claim then owns
// nothing.
func (e *env) evict(i inspector, handle string, c driver.Claim) {
	e.Helper()
	e.noError(i.Evict(e.Context(), "name", handle))
	if err := i.Renew(e.Context(), []driver.Claim{c})[0]; !errors.Is(err, driver.ErrNotOwner) {
		e.Errorf("its renewal: %v", err)
	}
	if err := i.Release(e.Context(), c); !errors.Is(err, driver.ErrNotOwner) {
		e.Errorf("its release: %v", err)
	}
}

// spared fails the case if the name is taken from anybody.
func (e *env) spared(i inspector, handle string) {
	e.Helper()
	err := i.Evict(e.Context(), "name", handle)
	if _, held := errors.AsType[*driver.Held](err); !held {
		e.Errorf("%q: %v", handle, err)
	}
}

// another looks like a handle, but no holder has it.
const another = "0123456789abcdef"

// inspectCases are for backends that are a driver.Inspector.
var inspectCases = []testCase{
	{name: "AHandleStandsForAHolderFromTheGrantOn", run: inspecting(func(e *env, i inspector) {
		first, second := e.writer("name"), e.writer("name")
		if err := i.Evict(e.Context(), "name", another); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("of a free name: %v", err)
		}
		granted := e.grant(i, first)
		info := e.look(i)
		if len(info.Handle) != len(another) || strings.Trim(info.Handle, "0123456789abcdef") != "" || strings.Contains(first.Token, info.Handle) {
			e.Errorf("the handle is %q", info.Handle)
		}
		if info.Fence != 0 && info.Fence != granted.Fence {
			e.Errorf("the fence is shown as %d, and it is %d", info.Fence, granted.Fence)
		}
		e.noError(i.Renew(e.Context(), []driver.Claim{first})[0])
		if again := e.look(i); again.Handle != info.Handle || again.Fence != info.Fence {
			e.Errorf("after a renewal %+v, before it %+v", again, info)
		}
		for _, wrong := range []string{another, info.Handle[:15], first.Token, ""} {
			e.spared(i, wrong)
		}
		e.noError(i.Renew(e.Context(), []driver.Claim{first})[0])
		e.evict(i, info.Handle, first)
		e.grant(i, second)
		e.spared(i, info.Handle)
		if info.Handle == e.look(i).Handle {
			e.Error("two tenures have one handle")
		}
	})},
	{name: "EachReaderIsTakenTheNameFromByItself", needs: shares, run: inspecting(func(e *env, i inspector) {
		one, two, writer := e.brief(e.reader("name")), e.reader("name"), e.writer("name")
		one.TTL = 30 * time.Second
		fence, other := e.grant(i, one).Fence, e.grant(i, two).Fence
		common := fence
		if other != fence {
			common = 0
		}
		info := e.look(i)
		if !info.Held || info.Handle != "" || info.Fence != common || len(info.Holders) != 2 {
			e.Fatalf("%+v", info)
		}
		for n, h := range info.Holders {
			if h.Limit != 0 || h.Remaining <= 0 || h.Remaining > info.Remaining || h.Handle == info.Holders[1-n].Handle {
				e.Errorf("%+v", info)
			}
		}
		e.spared(i, another)
		short, long := info.Holders[0], info.Holders[1]
		if short.Remaining > long.Remaining {
			short, long = long, short
		}
		e.evict(i, long.Handle, two)
		e.noError(i.Renew(e.Context(), []driver.Claim{one})[0])
		e.refused(i, writer, "a writer beside the other reader")
		e.evict(i, short.Handle, one)
		e.grant(i, writer)
	})},
	{name: "EachOfALimitedNumberIsTakenTheNameFromByItself", needs: limits, run: inspecting(func(e *env, i inspector) {
		one, two := e.permit("name", 2), e.permit("name", 3)
		e.grant(i, one)
		e.grant(i, two)
		info := e.look(i)
		if len(info.Holders) != 2 || info.Fence != 0 || info.Holders[0].Limit+info.Holders[1].Limit != 5 {
			e.Fatalf("%+v", info)
		}
		for _, h := range info.Holders {
			e.evict(i, h.Handle, map[int]driver.Claim{2: one, 3: two}[h.Limit])
		}
		e.grant(i, e.writer("name"))
	})},
	{name: "AKeptNameIsShownAndFreed", needs: keeps, run: inspecting(func(e *env, i inspector) {
		seen := make(map[string]bool)
		for n := range 4 {
			c := e.claim("name")
			c.Label = "who"
			e.grant(i, c)
			c.Keep = time.Minute
			if n%2 == 1 && i.Capabilities().Detach {
				c.Handoff = someHandoff
			}
			e.noError(i.Release(e.Context(), c))
			info := e.look(i)
			if !info.Held || !info.Kept || info.Foreign || info.Label != "who" || info.Handle == "" || len(info.Holders) > 0 || c.Handoff == "" && seen[info.Handle] {
				e.Errorf("%+v", info)
			}
			seen[info.Handle] = true
			e.spared(i, another)
			e.noError(i.Evict(e.Context(), "name", info.Handle))
		}
		e.grant(i, e.writer("name"))
	})},
	{name: "TheKindOfAHoldIsShown", run: inspecting(func(e *env, i inspector) {
		can := i.Capabilities()
		kinds := map[driver.HoldKind]driver.Claim{driver.HoldExclusive: e.writer("name")}
		if can.Shared {
			kinds[driver.HoldShared] = e.reader("name")
		}
		if can.Limit {
			kinds[driver.HoldLimited] = e.permit("name", 3)
		}
		if can.Keep {
			kinds[driver.HoldKept] = e.writer("name")
		}
		if can.Detach {
			kinds[driver.HoldHandoff] = e.writer("name")
		}
		if info := e.look(i); info.Kind != "" || info.HeldFor != 0 {
			e.Errorf("of a free name: %+v", info)
		}
		for kind, c := range kinds {
			e.grant(i, c)
			time.Sleep(e.ttl / 50)
			e.noError(i.Renew(e.Context(), []driver.Claim{c})[0])
			if kind == driver.HoldKept || kind == driver.HoldHandoff {
				c.Keep = time.Minute
				if kind == driver.HoldHandoff {
					c.Handoff = someHandoff
				}
				e.noError(i.Release(e.Context(), c))
			}
			info := e.look(i)
			if info.Kind != kind || info.HeldFor < 0 || info.HeldFor > time.Minute || kind == driver.HoldLimited != (info.Limit == 3) {
				e.Errorf("%s: %+v", kind, info)
			}
			if info.HeldFor > 0 && !info.Kept && !e.Timeless && info.HeldFor < e.ttl/100 {
				e.Errorf("%s: held for %s", kind, info.HeldFor)
			}
			handle := info.Handle
			if len(info.Holders) > 0 {
				handle = info.Holders[0].Handle
			}
			e.noError(i.Evict(e.Context(), "name", handle))
		}
	})},
	{name: "MarkersAreListedAndRemoved", needs: dedups, run: func(e *env) {
		d := e.Driver()
		i, ok := d.(driver.MarkerInspector)
		if !ok {
			e.lacks("it cannot tell which markers stand")
		}
		leave := func(name, scope string) {
			c := e.claim(name)
			e.grant(d, c)
			c.Label, c.Mark, c.Scope, c.Dedup = "who", true, scope, time.Hour
			e.noError(d.Release(e.Context(), c))
		}
		list := func(prefix string) map[string]driver.MarkerInfo {
			all := make(map[string]driver.MarkerInfo)
			for m, err := range i.Markers(e.Context(), prefix) {
				e.noError(err)
				all[m.Name+" "+m.Scope] = m
			}
			return all
		}
		leave("order:1", "pay")
		leave("order:1", "a}:v1:done:b *?[x]")
		leave("order:2", "")
		leave("other", "pay")
		e.grant(d, e.claim("order:3")) // no marker
		all := list("order:")
		for _, want := range []string{"order:1 pay", "order:1 a}:v1:done:b *?[x]", "order:2 "} {
			if m := all[want]; m.Label != "who" || m.Remaining <= 0 || m.Remaining > time.Hour {
				e.Errorf("%q: %+v", want, m)
			}
		}
		if len(all) != 3 || len(list("")) != 4 || len(list("order:*")) != 0 {
			e.Errorf("%v, in all %v", all, list(""))
		}
		e.noError(i.Unmark(e.Context(), "order:1", "pay"))
		if err := i.Unmark(e.Context(), "order:1", "pay"); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("again: %v", err)
		}
		if left := list("order:1"); len(left) != 1 {
			e.Errorf("left: %v", left)
		}
		if err := i.Unmark(done(), "order:2", ""); !errors.Is(err, driver.ErrNotSent) {
			e.Errorf("after the end of ctx: %v", err)
		}
	}},
	{name: "TheNextInLineIsToldOfAnEviction", run: inspecting(func(e *env, i inspector) {
		lined(func(e *env, process func() queuer) {
			owners := map[string]driver.Claim{"exclusive": e.writer("name")}
			if i.Capabilities().Shared {
				owners["shared"] = e.reader("name")
			}
			for what, owner := range owners {
				e.grant(i, owner)
				info, q, c := e.look(i), process(), e.place()
				handle := info.Handle
				if len(info.Holders) == 1 {
					handle = info.Holders[0].Handle
				}
				e.lineUp(q, c)
				served := make(chan struct{})
				go func() {
					defer close(served)
					e.serve(q, c)
				}()
				time.Sleep(e.ttl / 20)
				e.within(e.ttl/100, what+": the turn of the first", func() {
					e.noError(i.Evict(e.Context(), "name", handle))
					<-served
				})
				e.noError(q.Release(e.Context(), c))
			}
		})(e)
	})},
}
