package drivertest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// networkCases test what a backend makes of a service that does not answer.
var networkCases = []testCase{
	// Each operation, cut at each of its requests and each of its replies, comes to what it should when it is made again. Nobody
	// is told held by its own token, and nothing is left.
	{name: "EachOperationSurvivesAConnectionCutAtEachStep", run: func(e *env) {
		w, r := e.wire(), rivals{mine: e.lasting(""), theirs: e.lasting("")}
		for what, p := range (&meeting{}).plots() {
			for part, cut := range map[string]func(Wire, int){"request": Wire.CutRequest, "reply": Wire.CutReply} {
				for step := 1; step <= mostRequests && p.meanwhile == nil && !e.Failed(); step++ {
					w.meet(r, what, part, step, cut)
				}
			}
		}
	}},
	// A service that is silent ends no call late, Close beside a Wait included, and no call has an answer then: not a Wait either
	// that has had one before.
	{name: "ASilentServiceEndsNoCallLate", needs: []need{wires}, run: func(e *env) {
		d, through := e.connect()
		mine, c, waiting := e.lasting("mine"), e.lasting("name"), e.long("waited")
		e.grant(d, mine)
		e.holds(e.Driver(), "waited")
		w := e.waits(d, waiting)
		silence(through)
		defer heal(through)
		e.sleep(2*driver.Recheck(waiting.TTL) + e.Slow) // a look is under way
		w.cancel()
		<-w.over
		if m := driver.Explain(w.err); m.Answered() || m.Kind == driver.NotDone && e.can.Queue {
			e.Errorf("a wait under way: %v", w.err)
		}
		for what, call := range calls(d, c, mine) {
			ctx, cancel := context.WithTimeout(e.ctx, e.ttl/10)
			e.within(e.ttl/10+e.ttl/20, what, func() {
				if m := driver.Explain(call(ctx)); m.Answered() {
					e.Errorf("%s: %+v without an answer", what, m)
				}
			})
			cancel()
		}
		if closer, ok := d.(driver.Closer); ok {
			w := e.begins(d, waiting)
			e.sleep(e.ttl / 10)
			e.within(e.ttl/10+e.ttl/20, "Close", func() {
				ctx, cancel := context.WithTimeout(e.ctx, e.ttl/10)
				defer cancel()
				_ = closer.Close(ctx) // it may have something left
			})
			w.cancel()
			<-w.over
		}
		heal(through)
		e.queue(d, waiting, "the next wait")
		e.leaves(d, waiting, "leaving")
	}},
	// Where nothing listens each call says that nobody can reach the service, soon, and that it is no refusal. So does each look.
	{name: "AServiceThatCannotBeReachedSaysSo", needs: []need{nowhere}, run: func(e *env) {
		d, c := e.Unreachable(), e.claim("name")
		all, looks := calls(d, c, c), looks(d)
		maps.Copy(all, looks)
		for what, call := range all {
			ctx, cancel := context.WithTimeout(e.ctx, 2*time.Second)
			m := driver.Explain(call(ctx))
			cancel()
			if looks[what] == nil && !m.Nobody || m.Refused || m.Answered() {
				e.Errorf("%s: %+v", what, m)
			}
		}
	}},
	// Whatever the service answers is no outage: held, not the owner, a foreign value.
	{name: "AnAnswerIsNoOutage", run: func(e *env) {
		d, mine, free := e.Driver(), e.claim("name"), e.claim("free")
		e.grant(d, mine)
		_, held := d.Acquire(e.ctx, e.claim("name"))
		forged := mine
		forged.Token = token()
		free.TTL = 0 // core asks so whether an outage is over
		for what, err := range map[string]error{
			"held": held, "release": d.Release(e.ctx, forged), "renew": e.renew(d, forged), "a probe": e.renew(d, free),
		} {
			if m := driver.Explain(err); err == nil || !m.Answered() || m.Nobody || m.Refused {
				e.Errorf("%s: %v", what, err)
			}
		}
		if e.Overwrite != nil {
			e.Overwrite("foreign")
			_, err := d.Acquire(e.ctx, e.claim("foreign"))
			if m := driver.Explain(err); !m.Answered() || m.Nobody {
				e.Errorf("a foreign value: %v", err)
			}
		}
	}},
	// Close returns, also twice, and ends nothing for good: a Wait of the same token goes on in the queue.
	{name: "CloseReturnsAndWhatItEndedBeginsAgain", run: func(e *env) {
		holder, d := e.Driver(), e.Driver()
		closer, ok := d.(driver.Closer)
		if !ok {
			e.Skip("this backend keeps nothing alive")
		}
		for range 2 {
			held, c := e.holds(holder, "name"), e.long("name")
			e.queue(d, c, "the waiter")
			e.noError(closer.Close(e.ctx))
			e.noError(closer.Close(e.ctx))
			w := e.waits(d, c)
			held.release()
			w.granted(e.hearing(c)+driver.Recheck(c.TTL), "the waiter")
			e.release(d, c)
		}
		e.noError(closer.Close(e.ctx))
	}},
	// Of many names that were each used once, some with a waiter, nothing is left.
	{name: "NamesUsedOnceLeaveNothing", needs: []need{seen}, crowd: true, run: func(e *env) {
		d, other := e.Driver(), e.Driver()
		for i := range cmp.Or(e.Names, 10_000) {
			name := fmt.Sprint("name-", i)
			c := e.long(name)
			e.grant(d, c)
			if i%10 != 0 {
				e.release(d, c)
				continue
			}
			w := e.waits(other, e.long(name))
			e.release(d, c)
			w.granted(driver.Recheck(c.TTL)+e.hearing(c), name)
			w.release()
		}
		e.nothingLeft()
	}},
}

// calls are the four operations: c owns nothing, and mine owns its name.
func calls(d driver.Driver, c, mine driver.Claim) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"acquire": func(ctx context.Context) error { _, err := d.Acquire(ctx, c); return err },
		"wait":    func(ctx context.Context) error { _, err := d.Wait(ctx, c); return err },
		"renew":   func(ctx context.Context) error { return d.Renew(ctx, []driver.Claim{mine})[0] },
		"release": func(ctx context.Context) error { return d.Release(ctx, mine) },
	}
}

// looks are what an operator asks for, if the backend can tell who holds what.
func looks(d driver.Driver) map[string]func(ctx context.Context) error {
	i, ok := d.(inspect.Inspector)
	if !ok {
		return nil
	}
	return map[string]func(ctx context.Context) error{
		"inspect": func(ctx context.Context) error { _, err := i.Inspect(ctx, "name"); return err },
		"evict":   func(ctx context.Context) error { return i.Evict(ctx, "name", another) },
		"list": func(ctx context.Context) (err error) {
			for _, e := range i.Leases(ctx, "") {
				err = e
			}
			return err
		},
	}
}

// wire is a process whose connections a case cuts, and one with a good connection.
type wire struct {
	e          *env
	d, other   driver.Driver
	through    []Wire
	name, what string
}

// wire opens them, with what is connected and loaded once.
func (e *env) wire() *wire {
	d, through := e.connect()
	w := &wire{e: e, d: d, other: e.Driver(), through: through}
	w.warm()
	return w
}

// warm has the process connected, with what is loaded once.
func (w *wire) warm() {
	held, c := w.e.lasting("before"), w.e.lasting("before")
	w.e.grant(w.other, held)
	w.e.waits(w.d, c).stop("the waiter")
	w.e.leaves(w.d, c, "leaving")
	w.e.release(w.other, held)
	w.e.grant(w.d, c)
	w.e.noError(w.e.renew(w.d, c))
	w.e.release(w.d, c)
}
