package drivertest

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// directCases test grants by whoever frees a name, and messages that are lost, late, doubled or forged. A backend that
// only tells passes them, too.
var directCases = []testCase{
	// A grant that nobody has heard of is found by the next Wait or Acquire, or given back by leaving. After each of them the
	// token is not in the queue any more.
	{name: "AGrantThatNobodyHearsOfIsFoundOrGivenBack", needs: []need{queues}, run: func(e *env) {
		holder, d, f := e.Driver(), e.Driver(), fences{e: e}
		for what, settle := range map[string]func(c driver.Claim){
			"a wait finds it": func(c driver.Claim) {
				e.within(driver.Recheck(c.TTL), "the wait", func() { _, err := e.wait(d, c); e.noError(err) })
			},
			"an acquire finds it":   func(c driver.Claim) { e.grant(d, c) },
			"leaving gives it back": func(driver.Claim) {},
		} {
			held, c := e.lasting("name"), e.long("name")
			if g := e.grant(holder, held); e.can.Fence {
				f.next("the holder", g, 1)
			}
			e.queue(d, c, what)
			e.release(holder, held)
			settle(c)
			e.ends(d, c, what)
			e.free("name")
		}
		e.nothingLeft()
	}},
	// What must be looked at in the step that grants is never granted directly. That counts for what the last look of an entry
	// wants, whatever earlier ones wanted. The name is for that entry, whom nobody else is told of, until it asks itself,
	// and has its full TTL.
	{name: "WhatMustBeLookedAtIsNeverGrantedDirectly", needs: []need{queues}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		plain := func(*driver.Claim) {}
		marked := func(c *driver.Claim) { c.Scope, c.Dedup = "pay", time.Hour }
		granted := make(map[string]driver.Claim)
		for name, row := range map[string]struct {
			can   bool
			looks []func(c *driver.Claim)
		}{
			"marker":         {e.can.Dedup, []func(*driver.Claim){marked}},
			"marker-later":   {e.can.Dedup, []func(*driver.Claim){plain, marked}},
			"marker-between": {e.can.Dedup, []func(*driver.Claim){marked, plain, marked}},
			"keep":           {e.can.Keep, []func(*driver.Claim){func(c *driver.Claim) { c.Keep = c.TTL }}},
			"handoff":        {e.can.Detach, []func(*driver.Claim){func(c *driver.Claim) { c.Handoff = someHandoff }}},
			"shared":         {e.can.Shared, []func(*driver.Claim){func(c *driver.Claim) { c.Limit = driver.Readers }}},
			"limited":        {e.can.Limit, []func(*driver.Claim){func(c *driver.Claim) { c.Limit = 2 }}},
		} {
			if !row.can {
				continue
			}
			held, c := e.holds(holder, name), e.lasting(name)
			c.Label = "waits"
			wish := c
			for _, look := range row.looks {
				wish = c
				look(&wish)
				e.queue(d, wish, name)
			}
			held.release()
			if e.owns(d, wish) {
				e.Errorf("%s: it owns the name before it has looked", name)
			}
			if h := e.refusal(holder, e.long(name), name+": a stranger"); h.Label != "" || h.Exact {
				e.Errorf("%s: a stranger is told %+v", name, h)
			}
			e.waits(d, wish).granted(driver.Recheck(c.TTL), name)
			granted[name] = wish
		}
		e.sleep(driver.PlaceLife(2*time.Minute) + e.ttl/10)
		for name, c := range granted {
			if !e.owns(d, c) {
				e.Errorf("%s: its grant was cut short", name)
			}
			e.release(d, bare(c))
		}
	}},
	// A message grants nothing unless it names the very look that left the entry: not an old one again, to the same token or
	// another, and not one that is made up.
	{name: "AForgedMessageGrantsNothing", needs: []need{queues, says}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		heard, send := e.Messages("name")
		held, c, other := e.lasting("name"), e.long("name"), e.long("name")
		e.grant(holder, held)
		w := e.waits(d, c)
		e.release(holder, held)
		w.granted(driver.Recheck(c.TTL)+e.hearing(c), "the waiter")
		e.eventually("the message", func() bool { return len(heard()) > 0 })
		old := heard()
		again := func() {
			for _, m := range slices.Concat(old, old) {
				send(m)
			}
			e.sleep(e.ttl / 20)
		}
		again() // beside its own grant
		e.release(d, c)
		e.grant(holder, held)
		same := e.waits(d, c) // core never does this, and a message can be this late
		again()
		if same.ended() {
			e.Fatalf("late: it was believed: %+v", same.g)
		}
		w = e.waits(d, other)
		again()
		same.stop("the same token")
		if !e.owns(holder, held) || e.owns(d, c) || e.owns(d, other) {
			e.Error("it has another owner")
		}
		e.leaves(d, c, "leaving")
		for _, text := range forgeries(old[0].Text, c.Token, other.Token) {
			send(Message{old[0].To, text})
		}
		e.sleep(e.ttl / 20)
		if w.ended() {
			e.Fatalf("another token: it was believed: %+v, %v", w.g, w.err)
		}
		e.release(holder, held)
		w.granted(e.hearing(other)+driver.Recheck(other.TTL), "after all that")
	}},
	// A process that gets no new connections stands in the queue by those that it has, and is served in its turn.
	{name: "AWaiterWithoutNewConnectionsIsServedInItsTurn", needs: []need{queues, wires}, run: func(e *env) {
		d, through := e.connect()
		c := e.long("name")
		e.grant(d, e.claim("before")) // it is connected, and has never waited
		held := e.holds(e.Driver(), "name")
		for _, wire := range through {
			wire.BlackHoleNew(true)
		}
		defer heal(through)
		w := e.waits(d, c)
		behind := e.waits(e.Driver(), e.long("name"))
		e.sleep(driver.Recheck(c.TTL) / 2)
		held.release()
		w.granted(2*driver.Recheck(c.TTL), "the waiter")
		e.release(d, c)
		behind.granted(2*driver.Recheck(c.TTL), "the one behind it")
	}},
}

// forgeries are messages like text for another token, all that differ from it by one character, and all with another
// number where it has a small one: numbers can be guessed.
func forgeries(text, was, is string) (all []string) {
	replaced := []byte(text)
	for i := range replaced {
		if i+len(was) <= len(text) && text[i:i+len(was)] == was {
			copy(replaced[i:], is)
		}
	}
	theirs := string(replaced)
	all = append(all, "", "\x1f", theirs, theirs+"0", text+text)
	for _, at := range smallNumber.FindAllStringIndex(theirs, -1) {
		for n := range 60 {
			all = append(all, theirs[:at[0]]+strconv.Itoa(n)+theirs[at[1]:])
		}
	}
	for i := range replaced {
		changed := append([]byte(nil), replaced...)
		if changed[i]++; changed[i] == '9'+1 {
			changed[i] = '1'
		}
		all = append(all, string(changed), string(replaced[:i]))
	}
	return all
}

var smallNumber = regexp.MustCompile(`\b\d{1,3}\b`)

func silence(through []Wire) {
	for _, wire := range through {
		wire.BlackHole(true)
	}
}

func heal(through []Wire) {
	for _, wire := range through {
		wire.Heal()
	}
}
