package drivertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// directCases test grants by whoever frees a name, and messages that are lost, late, doubled or forged. A backend that
// only tells passes them, too.
var directCases = []testCase{
	{name: "AGrantThatNobodyHearsOfIsFoundOrGivenBack", needs: []need{queues}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		for what, settle := range map[string]func(c driver.Claim){
			"a wait finds it": func(c driver.Claim) {
				e.within(driver.Recheck(c.TTL), "the wait", func() {
					if _, err := e.wait(d, c); err != nil {
						e.Fatal(err)
					}
				})
			},
			"an acquire finds it":   func(c driver.Claim) { e.grant(d, c) },
			"leaving gives it back": func(driver.Claim) {},
		} {
			held, c := e.lasting("name"), e.long("name")
			f := fences{e: e}
			if e.can.Fence {
				f.next("the holder", e.grant(holder, held), 1)
			} else {
				e.grant(holder, held)
			}
			e.queue(d, c, what)
			e.release(holder, held)
			settle(c)
			e.ends(d, c, what)
			e.free("name")
		}
		e.nothingLeft()
	}},
	{name: "AGrantThatNobodyHearsOfEndsWithTheEntry", needs: []need{queues}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		held, c := e.lasting("name"), e.long("name")
		c.TTL *= 10 // the grant ends long before
		e.grant(holder, held)
		began := time.Now()
		e.queue(d, c, "the waiter")
		e.sleep(driver.Recheck(c.TTL) / 2)
		e.release(holder, held)
		e.freeAfter(driver.PlaceLife(c.TTL), "the grant that nobody has heard of")
		if lived := time.Since(began); lived < driver.PlaceLife(c.TTL) {
			e.Errorf("it has lived for %s", lived)
		}
	}},
	{name: "WhatMustBeLookedAtIsNeverGrantedDirectly", needs: []need{queues}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		claims := map[string]driver.Claim{}
		if e.can.Dedup {
			claims["a marker"] = e.marked("name", "pay")
		}
		if e.can.Keep {
			c := e.long("name")
			c.Keep = c.TTL / 2
			claims["Keep"] = c
		}
		if e.can.Detach {
			c := e.long("name")
			c.Handoff = someHandoff
			claims["a hand-off"] = c
		}
		if e.can.Shared {
			claims["shared"] = e.reader("name")
		}
		if e.can.Limit {
			claims["a limit"] = e.permit("name", 2)
		}
		for what, c := range claims {
			held := e.lasting("name")
			e.grant(holder, held)
			e.queue(d, c, what)
			e.release(holder, held)
			if e.owns(d, c) {
				e.Errorf("%s: it owns the name before it has looked", what)
			}
			e.refused(holder, e.long("name"), what+": a stranger")
			e.waits(d, c).granted(driver.Recheck(c.TTL), what)
			e.release(d, bare(c))
		}
	}},
	{name: "AWishThatIsNoLongerPlainIsNotGrantedDirectly", needs: []need{queues, dedups}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		for _, plainFirst := range []bool{true, false} {
			held, c := e.lasting("name"), e.long("name")
			marked := c
			marked.Scope, marked.Dedup = "pay", time.Hour
			e.grant(holder, held)
			looks := []driver.Claim{c, marked} // of one token: another caller of the process is the first now
			if !plainFirst {
				looks = []driver.Claim{marked, c, marked}
			}
			for _, wish := range looks {
				e.queue(d, wish, "the waiter")
			}
			e.release(holder, held)
			if e.owns(d, c) {
				e.Error("it owns the name before it has looked for the marker")
			}
			e.grant(d, marked)
			e.release(d, bare(marked))
		}
	}},
	{name: "AWaiterForAMarkerSeesTheOneThatTheHolderLeaves", needs: []need{queues, dedups}, run: func(e *env) {
		holder, first, second := e.Driver(), e.Driver(), e.Driver()
		held, same, other := e.marked("name", "pay"), e.marked("name", "pay"), e.marked("name", "refund")
		e.grant(holder, held)
		w, next := e.waits(first, same), e.waits(second, other)
		e.release(holder, held)
		e.within(e.hearing(same)+e.ttl/100, "the answer", func() { <-w.over })
		if d, ok := errors.AsType[*driver.Duplicate](w.err); !ok || d.Label != "who" {
			e.Errorf("%+v, %v", w.g, w.err)
		}
		e.leaves(first, same, "leaving")
		next.granted(e.hearing(other)+driver.Recheck(other.TTL), "another scope")
	}},
	{name: "AWaiterWithKeepHasItsFullTTLAtOnce", needs: []need{queues, keeps}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		held, c := e.lasting("name"), e.long("name")
		c.TTL *= 2
		c.Keep = c.TTL
		e.grant(holder, held)
		w := e.waits(d, c)
		e.release(holder, held)
		g := w.granted(e.hearing(c), "the waiter")
		if g.TTL != 0 && g.TTL < c.TTL {
			e.Errorf("a TTL of %s", g.TTL)
		}
		e.sleep(driver.PlaceLife(c.TTL) + e.ttl/10)
		if !e.owns(d, c) {
			e.Error("its grant was cut short")
		}
	}},
	{name: "ALookBesideItsOwnGrantDoesNotQueueTheOwner", needs: []need{queues}, crowd: true, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		for range e.rounds(40) {
			held, c := e.lasting("name"), e.long("name")
			e.grant(holder, held)
			e.queue(d, c, "the waiter")
			freed := make(chan error, 1)
			jitter := time.Duration(rand.IntN(1000)) * time.Microsecond //nolint:gosec // G404: no secret
			go func() {
				time.Sleep(jitter)
				freed <- holder.Release(e.ctx, held)
			}()
			for granted := false; !granted; { // looks as often as it can
				ctx, cancel := context.WithTimeout(e.ctx, time.Millisecond+e.Slow)
				_, err := d.Wait(ctx, c)
				cancel()
				granted = err == nil
				if e.ctx.Err() != nil {
					e.Fatal(err)
				}
			}
			e.noError(<-freed)
			e.release(d, c)
			e.free("name") // at once: the owner is not in the queue
		}
		e.nothingLeft()
	}},
	{name: "AnOldMessageGrantsNothing", needs: []need{queues, says}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		heard, send := e.Messages("name")
		held, c := e.lasting("name"), e.long("name")
		e.grant(holder, held)
		w := e.waits(d, c)
		e.release(holder, held)
		w.granted(driver.Recheck(c.TTL)+e.hearing(c), "the waiter")
		e.eventually("the message", func() bool { return len(heard()) > 0 })
		old := heard()
		twice := func(what string) {
			for range 2 {
				for _, m := range old {
					send(m)
				}
			}
			e.sleep(e.ttl / 20)
			_ = what
		}
		twice("beside its own grant")
		e.release(d, c)
		e.grant(holder, held)
		again := e.waits(d, c) // the same token: core never does this, and a message can be this late
		twice("late, to the same token")
		if again.ended() {
			e.Fatalf("late: it was believed: %+v", again.g)
		}
		other := e.long("name")
		next := e.waits(d, other)
		twice("late, to another token")
		again.stop("the same token")
		next.stop("another token")
		if !e.owns(holder, held) || e.owns(d, c) || e.owns(d, other) {
			e.Error("it has another owner")
		}
		e.leaves(d, c, "leaving")
		w = e.waits(d, other)
		e.release(holder, held)
		w.granted(e.hearing(other)+driver.Recheck(other.TTL), "after all that")
	}},
	{name: "AForgedMessageGrantsNothing", needs: []need{queues, says}, run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		heard, send := e.Messages("name")
		held, c := e.lasting("name"), e.long("name")
		e.grant(holder, held)
		w := e.waits(d, c)
		e.release(holder, held)
		w.granted(driver.Recheck(c.TTL)+e.hearing(c), "the waiter")
		e.eventually("the message", func() bool { return len(heard()) > 0 })
		genuine := heard()[0]
		e.release(d, c)
		e.grant(holder, held)
		next := e.long("name")
		w = e.waits(d, next)
		for _, text := range forgeries(genuine.Text, c.Token, next.Token) {
			send(Message{genuine.To, text})
		}
		e.sleep(e.ttl / 20)
		if w.ended() {
			e.Fatalf("it was believed: %+v, %v", w.g, w.err)
		}
		e.release(holder, held)
		w.granted(e.hearing(next)+driver.Recheck(next.TTL), "after all that")
	}},
	{name: "AWaiterWithoutNewConnectionsIsServedInItsTurn", needs: []need{queues, wires}, run: func(e *env) {
		holder := e.Driver()
		d, through := e.connect()
		held, c := e.lasting("name"), e.long("name")
		e.grant(d, e.claim("before")) // it is connected, and has never waited
		e.grant(holder, held)
		for _, wire := range through {
			wire.BlackHoleNew(true)
		}
		defer heal(through)
		w := e.waits(d, c)
		behind := e.waits(e.Driver(), e.long("name"))
		e.sleep(driver.Recheck(c.TTL) / 2)
		e.release(holder, held)
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
	all = append(all, "", "\x1f", string(replaced), string(replaced)+"0", text+text)
	for _, at := range smallNumber.FindAllStringIndex(text, -1) {
		for n := range 60 {
			all = append(all, text[:at[0]]+strconv.Itoa(n)+text[at[1]:])
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

func heal(through []Wire) {
	for _, wire := range through {
		wire.Heal()
	}
}
