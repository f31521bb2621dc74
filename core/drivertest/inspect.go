package drivertest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// inspector is a backend that can tell who holds what.
type inspector interface {
	driver.Driver
	inspect.Inspector
}

func inspecting(run func(e *env, i inspector)) func(*env) {
	return func(e *env) {
		i, ok := e.Driver().(inspector)
		if !ok {
			e.Skip("this backend cannot tell who holds what")
		}
		run(e, i)
	}
}

// look returns what is known of "name": never a token.
func (e *env) look(i inspector) inspect.LeaseInfo {
	e.Helper()
	info, err := i.Inspect(e.ctx, "name")
	e.noError(err)
	if text := fmt.Sprintf("%+v", info); strings.Contains(text, tokenPrefix) {
		e.Errorf("it shows a token: %s", text)
	}
	return info
}

// handle is that of the only holder.
func (e *env) handle(i inspector) string {
	e.Helper()
	info := e.look(i)
	if len(info.Holders) == 1 {
		return info.Holders[0].Handle
	}
	return info.Handle
}

// evict takes the name from the holder that is meant. It fails the case unless the claim then owns
// nothing.
func (e *env) evict(i inspector, handle string, c driver.Claim) {
	e.Helper()
	e.noError(i.Evict(e.ctx, "name", handle))
	if e.owns(i, c) {
		e.Error("it still owns the name")
	}
	e.leaves(i, c, "who was evicted")
}

// spared fails the case if the name is taken from anybody.
func (e *env) spared(i inspector, handle string) {
	e.Helper()
	err := i.Evict(e.ctx, "name", handle)
	if _, held := errors.AsType[*driver.Held](err); !held {
		e.Errorf("%q: %v", handle, err)
	}
}

// another looks like a handle, but no holder has it.
const another = "0123456789abcdef"

// inspectCases are for backends that can tell who holds what.
var inspectCases = []testCase{
	// A holder has a handle of its own from the grant on, over renewals, which is not its token. By that and nothing else an
	// operator takes the name from it, and not from the next holder.
	{name: "AHandleStandsForAHolderFromTheGrantOn", run: inspecting(func(e *env, i inspector) {
		first, second := e.lasting("name"), e.lasting("name")
		if err := i.Evict(e.ctx, "name", another); !errors.Is(err, driver.ErrNotOwner) {
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
		e.noError(e.renew(i, first))
		if again := e.look(i); again.Handle != info.Handle || again.Fence != info.Fence {
			e.Errorf("after a renewal %+v, before it %+v", again, info)
		}
		for _, wrong := range []string{another, info.Handle[:15], first.Token, ""} {
			e.spared(i, wrong)
		}
		e.noError(e.renew(i, first))
		e.evict(i, info.Handle, first)
		e.grant(i, second)
		e.spared(i, info.Handle)
		if info.Handle == e.look(i).Handle {
			e.Error("two holders have one handle")
		}
	})},
	// Each of those who share a name is shown, with its limit and its time, and is taken the name from by itself.
	{name: "EachOfThoseWhoShareIsTakenTheNameFromByItself", needs: []need{shares, limits}, run: inspecting(func(e *env, i inspector) {
		for what, of := range map[string][]int{"shared": {driver.Readers, driver.Readers}, "limited": {2, 3}} {
			one, two := e.permit("name", of[0]), e.permit("name", of[1])
			one.TTL = 30 * time.Second
			common := e.grant(i, one).Fence
			if e.grant(i, two).Fence != common {
				common = 0
			}
			info := e.look(i)
			if !info.Held || info.Handle != "" || info.Fence != common || len(info.Holders) != 2 || info.Limit != max(0, of[0]) {
				e.Fatalf("%s: %+v", what, info)
			}
			short, long := info.Holders[0], info.Holders[1]
			if short.Remaining > long.Remaining {
				short, long = long, short
			}
			if short.Remaining <= 0 || long.Remaining > info.Remaining && what == "shared" || short.Handle == long.Handle ||
				short.Limit != max(0, of[0]) || long.Limit != max(0, of[1]) {
				e.Errorf("%s: %+v", what, info)
			}
			e.spared(i, another)
			e.evict(i, long.Handle, two)
			e.noError(e.renew(i, one))
			e.refused(i, e.claim("name"), what+": beside the other one")
			e.evict(i, short.Handle, one)
			e.free("name")
		}
	})},
	// The kind of each hold is shown, and for how long it has lasted, renewals or not; that of a name too that is kept, for a hand-off
	// or not. An operator ends it by its handle.
	{name: "TheKindOfAHoldIsShown", run: inspecting(func(e *env, i inspector) {
		kinds := make(map[inspect.HoldKind]driver.Claim)
		for kind, c := range e.kinds(always("name")) {
			kinds[inspect.HoldKind(kind)] = c
		}
		if e.can.Keep {
			kinds[inspect.HoldKept] = e.lasting("name")
		}
		if e.can.Detach {
			kinds[inspect.HoldHandoff] = e.lasting("name")
		}
		if info := e.look(i); info.Held || info.Kind != "" || info.HeldFor != 0 {
			e.Errorf("of a free name: %+v", info)
		}
		seen := make(map[string]bool)
		for _, kind := range slices.Repeat(slices.Collect(maps.Keys(kinds)), 2) {
			c, left := kinds[kind], kind == inspect.HoldKept || kind == inspect.HoldHandoff
			c.Token, c.Label = token(), "who"
			granted := time.Now()
			e.grant(i, c)
			e.sleep(e.ttl / 50)
			e.noError(e.renew(i, c))
			if kind == inspect.HoldHandoff {
				c.Handoff = someHandoff
			}
			if left {
				e.release(i, kept(c, time.Minute))
			}
			info := e.look(i)
			if info.Kind != kind || info.HeldFor < 0 || info.HeldFor > time.Since(granted)+e.ttl || kind == inspect.HoldLimited != (info.Limit == 2) {
				e.Errorf("%s: %+v", kind, info)
			}
			if info.HeldFor > 0 && !info.Kept && info.HeldFor < e.ttl/100 { // 0 where times are not kept
				e.Errorf("%s: held for %s", kind, info.HeldFor)
			}
			if info.Kept != left || info.Foreign || left && (info.Label != "who" || info.Handle == "" || len(info.Holders) > 0) ||
				kind == inspect.HoldKept && seen[info.Handle] {
				e.Errorf("%s: %+v", kind, info)
			}
			seen[info.Handle] = true
			e.spared(i, another)
			e.noError(i.Evict(e.ctx, "name", e.handle(i)))
		}
	})},
	// Names that are held are listed by their prefix, which is no pattern, each once, with all who share it.
	{name: "HeldNamesAreListedByTheirPrefix", run: inspecting(func(e *env, i inspector) {
		for _, name := range []string{"order:1", "order:2", "order:", "other", "ord*r:"} {
			c := e.lasting(name)
			c.Label = "of " + name
			e.grant(i, c)
		}
		c := e.lasting("order:3")
		e.grant(i, c)
		e.release(i, c)
		for prefix, n := range map[string]int{"": 5, "o": 5, "order:": 3, "order:1": 1, "ord*r": 1, "order:3": 0, "?": 0} {
			names := make(map[string]bool)
			for info, err := range i.Leases(e.ctx, prefix) {
				e.noError(err)
				names[info.Name] = true
				if !info.Held || info.Label != "of "+info.Name || !strings.HasPrefix(info.Name, prefix) {
					e.Errorf("with %q: %+v", prefix, info)
				}
			}
			if len(names) != n {
				e.Errorf("with %q: %v", prefix, names)
			}
		}
		if !e.can.Shared {
			return
		}
		e.grant(i, e.reader("shared"))
		e.grant(i, e.reader("shared"))
		found := 0
		for info, err := range i.Leases(e.ctx, "shared") {
			e.noError(err)
			found += len(info.Holders)
		}
		if found != 2 {
			e.Errorf("%d holders in all that is listed", found)
		}
	})},
	// Those who wait are shown in the order of the queue, without those who have left it.
	{name: "TheQueueIsShown", needs: []need{queues}, run: inspecting(func(e *env, i inspector) {
		held := e.lasting("name")
		e.grant(i, held)
		processes := []driver.Driver{e.Driver(), e.Driver()}
		queue := []driver.Claim{e.lasting("name"), e.lasting("name")}
		for n, d := range processes {
			queue[n].Label = []string{"one", "two"}[n]
			e.queue(d, queue[n], queue[n].Label)
			e.sleep(e.ttl / 100)
		}
		line := e.look(i).Line
		if len(line) != 2 {
			e.Fatalf("%+v", line)
		}
		for n, w := range line {
			if !w.Alive || w.Label != "" && w.Label != queue[n].Label || w.Waited < 0 || w.Waited > 0 && w.Waited < e.ttl/200 {
				e.Errorf("%+v", line)
			}
		}
		if line[0].Waited < line[1].Waited {
			e.Errorf("%+v", line)
		}
		e.leaves(processes[0], queue[0], "the first")
		if line := e.look(i).Line; len(line) != 1 || line[0].Label != "" && line[0].Label != "two" {
			e.Errorf("without the first: %+v", line)
		}
	})},
	// Taking a name from its holder, of whatever kind, serves the first of the queue, as a release does.
	{name: "AnEvictionServesTheFirstOfTheQueue", needs: []need{queues}, run: inspecting(func(e *env, i inspector) {
		for what, owner := range e.kinds(always("name")) {
			d, c := e.Driver(), e.long("name")
			e.grant(i, owner)
			w := e.waits(d, c)
			e.noError(i.Evict(e.ctx, "name", e.handle(i)))
			w.granted(e.hearing(c), what)
			e.release(d, c)
		}
	})},
	// Markers are listed by the prefix of their name, and one is removed by its name and scope alone.
	{name: "MarkersAreListedAndRemoved", needs: []need{dedups}, run: func(e *env) {
		d := e.Driver()
		i, ok := d.(inspect.MarkerInspector)
		if !ok {
			e.Skip("this backend cannot tell which markers stand")
		}
		list := func(prefix string) map[string]inspect.MarkerInfo {
			all := make(map[string]inspect.MarkerInfo)
			for m, err := range i.Markers(e.ctx, prefix) {
				e.noError(err)
				all[m.Name+" "+m.Scope] = m
			}
			return all
		}
		for _, c := range []driver.Claim{
			e.marked("order:1", "pay"), e.marked("order:1", "a}:v1:done:b *?[x]"), e.marked("order:2", ""), e.marked("other", "pay"),
		} {
			e.grant(d, c)
			e.release(d, c)
		}
		e.grant(d, e.lasting("order:3")) // no marker
		all := list("order:")
		for _, want := range []string{"order:1 pay", "order:1 a}:v1:done:b *?[x]", "order:2 "} {
			if m := all[want]; m.Label != "who" || m.Remaining <= 0 || m.Remaining > time.Hour {
				e.Errorf("%q: %+v", want, m)
			}
		}
		if len(all) != 3 || len(list("")) != 4 || len(list("order:*")) != 0 {
			e.Errorf("%v, in all %v", all, list(""))
		}
		e.noError(i.Unmark(e.ctx, "order:1", "pay"))
		e.grant(d, e.marked("order:1", "pay"))
		if err := i.Unmark(e.ctx, "order:1", "pay"); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("again: %v", err)
		}
		if left := list("order:1"); len(left) != 1 {
			e.Errorf("left: %v", left)
		}
		if err := i.Unmark(done(), "order:2", ""); !errors.Is(err, driver.ErrNotSent) {
			e.Errorf("after the end of ctx: %v", err)
		}
	}},
}
