package drivertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// queuer is a backend that has queues.
type queuer interface {
	driver.Driver
	driver.Queuer
}

// lineCases test the queue for a name, for backends that are a driver.Queuer.
var lineCases = []testCase{
	{name: "PlacesAreServedInTheirOrder", run: lined(func(e *env, process func() queuer) {
		holder, held := process(), e.place()
		e.grant(holder, held)
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex // protects order
			order []int
		)
		for i := range 4 {
			q, c := process(), e.place()
			e.lineUp(q, c)
			wg.Go(func() {
				e.serve(q, c)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
				e.noErrorHere(q.Release(e.Context(), c))
			})
		}
		e.noError(holder.Release(e.Context(), held))
		e.within(time.Second, "serving all", wg.Wait)
		for i, served := range order {
			if i != served {
				e.Fatalf("served in the order %v", order)
			}
		}
	})},
	{name: "AFreeNameIsForTheFirstInLine", run: lined(func(e *env, process func() queuer) {
		holder, first, second := process(), process(), process()
		held, a, b := e.place(), e.place(), e.place()
		e.grant(holder, held)
		e.lineUp(first, a)
		e.lineUp(second, b)
		e.noError(holder.Release(e.Context(), held))
		stranger, nobody := e.place(), e.claim("name")
		for what, c := range map[string]driver.Claim{"the second": b, "a stranger": stranger, "who has no place": nobody} {
			_, err := second.Acquire(e.Context(), c)
			if refusal, ok := errors.AsType[*driver.Held](err); !ok || refusal.Label != "" {
				e.Errorf("%s: %v", what, err)
			}
		}
		e.grant(first, a)
		if _, err := second.Acquire(e.Context(), b); err == nil {
			e.Error("two holders")
		}
		e.noError(first.Release(e.Context(), a)) // the grant has left the line
		e.grant(second, b)
		e.noError(second.Release(e.Context(), b))
		e.grant(holder, nobody)
	})},
	{name: "EveryCallWithAPlaceKeepsItAlive", run: lined(func(e *env, process func() queuer) {
		holder, first, second := process(), process(), process()
		held, a, b := e.place(), e.place(), e.place()
		held.TTL = time.Minute
		e.grant(holder, held)
		e.lineUp(first, a)
		e.lineUp(second, b)
		life := driver.PlaceLife(a.TTL)
		for range 6 { // two lives
			time.Sleep(life / 3)
			_, errA := first.Acquire(e.Context(), a)
			_, errB := second.Acquire(e.Context(), b)
			if errA == nil || errB == nil {
				e.Fatal("two holders")
			}
		}
		e.noError(holder.Release(e.Context(), held))
		if _, err := second.Acquire(e.Context(), b); err == nil {
			e.Error("the second was served before the first")
		}
		e.grant(first, a)
	})},
	{name: "ADeadPlaceIsDroppedByWhoeverMeetsIt", run: lined(func(e *env, process func() queuer) {
		for what, next := range map[string]driver.Claim{"a waiter": e.place(), "a stranger": e.claim("name")} {
			holder, dead, alive := process(), process(), process()
			held, a := e.place(), e.place()
			e.grant(holder, held)
			e.lineUp(dead, a) // and is never heard of again
			gone := time.Now()
			e.noError(holder.Release(e.Context(), held))
			life := driver.PlaceLife(a.TTL)
			e.within(life, what, func() {
				if next.Place == "" {
					e.eventually("the place is dropped", func() bool { _, err := alive.Acquire(e.Context(), next); return err == nil })
				} else {
					e.serve(alive, next)
				}
			})
			if lived := time.Since(gone); lived < life-2*e.lineUpFor() {
				e.Errorf("%s met a place that was dropped after %s", what, lived)
			}
			e.noError(alive.Release(e.Context(), next))
		}
	})},
	{name: "AReleaseWithAPlaceLeavesTheLine", run: lined(func(e *env, process func() queuer) {
		holder, first, second := process(), process(), process()
		held, a, b := e.place(), e.place(), e.place()
		e.grant(holder, held)
		e.lineUp(first, a)
		e.lineUp(second, b)
		gone := driver.Claim{Name: "name", Token: token(), TTL: a.TTL, Place: a.Place}
		if err := first.Release(e.Context(), gone); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("leaving: %v", err)
		}
		e.noError(holder.Renew(e.Context(), []driver.Claim{held})[0])
		e.noError(holder.Release(e.Context(), held))
		e.grantSoon(second, b)
	})},
	{name: "AnOwnersReleaseLeavesTheLineToo", run: lined(func(e *env, process func() queuer) {
		holder, second := process(), process()
		held, b := e.claim("name"), e.place()
		held.TTL = e.longTTL()
		e.grant(holder, held)
		again := e.place() // of the same process, whose next waiter has lined up
		e.lineUp(holder, again)
		e.lineUp(second, b)
		held.Place = again.Place
		e.noError(holder.Release(e.Context(), held))
		e.grant(second, b)
		e.noError(second.Release(e.Context(), b))
		e.free()
	})},
	{name: "AnOwnerIsNotLinedUp", run: lined(func(e *env, process func() queuer) {
		holder, other := process(), process()
		claims := []driver.Claim{e.place()}
		if holder.Capabilities().Shared {
			reader := e.place()
			reader.Shared = true
			claims = append(claims, reader)
		}
		for _, c := range claims {
			e.noError(holder.Wait(e.Context(), c))
			e.grant(holder, c)
			e.noError(holder.Wait(e.Context(), c)) // late: it was sent before the grant
			c.Place = ""                           // only the grant has left the line
			e.noError(holder.Release(e.Context(), c))
			next := e.claim("name")
			e.grant(other, next)
			e.noError(other.Release(e.Context(), next))
		}
	})},
	{name: "ARepeatedGrantLeavesTheLineToo", run: lined(func(e *env, process func() queuer) {
		holder, other := process(), process()
		held, waiter := e.claim("name"), e.place()
		held.TTL = e.longTTL()
		e.grant(holder, held)    // its answer is lost, and its caller stands behind
		e.lineUp(holder, waiter) // another one of the same process, who gives up
		again := held
		again.Place = waiter.Place
		e.grant(holder, again)
		e.noError(holder.Release(e.Context(), held))
		e.grant(other, e.claim("name"))
	})},
	{name: "WhoLeavesAFreeNameTellsTheNext", run: lined(func(e *env, process func() queuer) {
		holder, first, second := process(), process(), process()
		held, a, b := e.place(), e.place(), e.place()
		e.grant(holder, held)
		e.lineUp(first, a)
		e.lineUp(second, b)
		e.noError(holder.Release(e.Context(), held))
		served := make(chan struct{})
		go func() {
			defer close(served)
			e.serve(second, b)
		}()
		time.Sleep(e.ttl / 20)
		gone := driver.Claim{Name: "name", Token: token(), TTL: a.TTL, Place: a.Place}
		e.within(e.ttl/100, "the next's turn", func() {
			if err := first.Release(e.Context(), gone); !errors.Is(err, driver.ErrNotOwner) {
				e.Errorf("leaving: %v", err)
			}
			<-served
		})
		e.noError(second.Release(e.Context(), b))
	})},
	{name: "AWaitThatEndsBeforeItsPlaceIsInTheQueueSaysSo", run: lined(func(e *env, process func() queuer) {
		holder, first := process(), process()
		held, a := e.place(), e.place()
		e.grant(holder, held)
		err := first.Wait(done(), a)
		if err == nil {
			e.Fatal("two holders")
		}
		e.noError(holder.Release(e.Context(), held))
		other := e.claim("name")
		_, refused := holder.Acquire(e.Context(), other)
		switch {
		case errors.Is(err, driver.ErrNotSent) && refused != nil:
			e.Errorf("the place is in the queue: %v", err)
		case err == context.Canceled && refused == nil: //nolint:errorlint // driver.Queuer: as it is
			e.Error("the error says that the place is in the queue")
		}
	})},
	{name: "TheEndOfATTLIsTheFirstOnesTurn", run: lined(func(e *env, process func() queuer) {
		holder, first, second := process(), process(), process()
		held, a, b := e.claim("name"), e.place(), e.place()
		e.grant(holder, held) // and is never heard of again
		e.lineUp(first, a)
		e.lineUp(second, b)
		e.within(e.ttl, "the first one's turn", func() { e.serve(first, a) })
		if _, err := second.Acquire(e.Context(), b); err == nil {
			e.Error("two holders")
		}
		e.noError(first.Release(e.Context(), a))
		e.grant(second, b)
	})},
	{name: "BlocksOfFencesNeverMeet", needs: blocks, run: lined(func(e *env, process func() queuer) {
		mine, theirs := process(), process()
		a, waiting := e.place(), e.place()
		a.Fences = driver.MaxTurns
		last := uint64(0)
		take := func(what string, g driver.Grant, most int) {
			e.Helper()
			if g.Fence <= last || g.Fences < 0 || g.Fences > most {
				e.Errorf("%s: %d fences from %d on, after %d", what, g.Fences, g.Fence, last)
			}
			last = g.Fence + uint64(max(1, g.Fences)) - 1
		}
		take("alone", e.grant(mine, a), driver.MaxTurns)
		if again := e.grant(mine, a); again.Fence+uint64(max(1, again.Fences))-1 < last {
			e.Errorf("asked again: %d fences from %d on, after %d", again.Fences, again.Fence, last)
		} else {
			last = again.Fence + uint64(max(1, again.Fences)) - 1
		}
		e.noError(mine.Release(e.Context(), a))
		one := e.claim("name")
		one.TTL = e.longTTL()
		take("one", e.grant(theirs, one), 1)
		e.lineUp(mine, a)
		e.lineUp(theirs, waiting)
		e.noError(theirs.Release(e.Context(), one))
		a.Token = token()
		take("beside others", e.grant(mine, a), driver.TurnsBesideOthers)
		e.noError(mine.Release(e.Context(), a))
		take("the others", e.grant(theirs, waiting), 1)
		e.eventually("the name expires", func() bool {
			g, err := mine.Acquire(e.Context(), a)
			if err == nil {
				take("after the end of a TTL", g, driver.MaxTurns)
			}
			return err == nil
		})
	})},
}

// lined runs a case with backends of separate processes.
func lined(run func(e *env, process func() queuer)) func(*env) {
	return func(e *env) {
		if _, ok := e.probe.(queuer); !ok {
			e.lacks("no line")
		}
		var idle []driver.IdleCloser
		defer func() {
			for _, c := range idle {
				e.noErrorHere(c.CloseIdle(e.Context()))
			}
		}()
		run(e, func() queuer {
			q, _ := e.Driver().(queuer)
			if c, ok := q.(driver.IdleCloser); ok {
				idle = append(idle, c)
			}
			return q
		})
	}
}

// place makes a claim of "name" by a process that is, or will be, in the queue. Its TTL gives heartbeats
// time on a busy machine.
func (e *env) place() driver.Claim {
	c := e.claim("name")
	c.TTL = e.longTTL()
	c.Place = token()
	return c
}

// longTTL is so long that a case does not wait for its end. A machine that is busy answers within the bound of an
// attempt, a third of it.
func (e *env) longTTL() time.Duration { return max(e.ttl, 6*time.Second) }

// grantSoon is grant after releases by two others, each of which some nodes may not have heard of yet. It takes far
// less than the life of a place that was not left.
func (e *env) grantSoon(d driver.Driver, c driver.Claim) {
	e.Helper()
	for began := time.Now(); ; time.Sleep(e.ttl / 100) {
		_, err := d.Acquire(e.Context(), c)
		if err == nil {
			return
		}
		if _, held := errors.AsType[*driver.Held](err); !held || time.Since(began) > driver.PlaceLife(c.TTL)/3 {
			e.Fatalf("acquire: %v", err)
		}
	}
}

// serve waits in the queue, as core does, until c is granted. It may run on any goroutine.
func (e *env) serve(q queuer, c driver.Claim) {
	for range 1000 {
		_, err := q.Acquire(e.Context(), c)
		if err == nil {
			return
		}
		held, ok := errors.AsType[*driver.Held](err)
		if !ok {
			e.Errorf("acquire: %v", err)
			return
		}
		next := driver.Recheck(c.TTL)
		if held.Remaining > 0 {
			next = min(next, held.Remaining+time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(e.Context(), next)
		err = q.Wait(ctx, c)
		// An answer that does not come in time is told as such: whether the place stands is not known. A client may say
		// so before the context does.
		over := ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)
		cancel()
		if err != nil && !over {
			e.Errorf("wait: %v", err)
			return
		}
	}
	e.Error("told to try a thousand times, in vain")
}

// noErrorHere is noError for goroutines that are not the case's own.
func (e *env) noErrorHere(err error) {
	if err != nil {
		e.Error(err)
	}
}

func blocks(can driver.Capabilities) bool { return can.Fence && can.Block }
