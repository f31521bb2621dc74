package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// waitCases are for backends that are a driver.Queuer; others have nothing to say here.
var waitCases = []testCase{
	{name: "AWaiterHearsOfTheRelease", run: queued(func(e *env, q driver.Queuer, holder driver.Driver) {
		c := e.claim("name")
		c.TTL = time.Minute
		e.grant(holder, c)
		heard := make(chan error, 1)
		go func() { heard <- q.Wait(e.Context(), e.claim("name")) }()
		time.Sleep(e.ttl / 10) // most likely it listens by now; if not, it must look
		e.noError(holder.Release(e.Context(), c))
		e.within(time.Second, "hearing of the release", func() { e.noError(<-heard) })
	})},
	{name: "AReleaseBeforeTheWaitIsNotMissed", run: queued(func(e *env, q driver.Queuer, holder driver.Driver) {
		for range 20 {
			c := e.claim("name")
			c.TTL = time.Minute
			e.grantSoon(holder, c)
			heard := make(chan error, 1)
			next := e.claim("name")
			go func() { heard <- q.Wait(e.Context(), next) }()
			e.noError(holder.Release(e.Context(), c))
			e.within(time.Second, "hearing of the release", func() { e.noError(<-heard) })
			e.grant(q.(driver.Driver), next)
			e.noError(q.(driver.Driver).Release(e.Context(), next)) // by who has it: a token may mean nothing to others
		}
	})},
	{name: "AWaiterForAFreeNameIsTold", run: queued(func(e *env, q driver.Queuer, _ driver.Driver) {
		e.within(time.Second, "the wait", func() { e.noError(q.Wait(e.Context(), e.claim("name"))) })
	})},
	{name: "AWaiterHangsUpWithItsContext", run: queued(func(e *env, q driver.Queuer, holder driver.Driver) {
		c := e.claim("name")
		c.TTL = time.Minute
		e.grant(holder, c)
		ctx, cancel := context.WithTimeout(e.Context(), e.ttl/10)
		defer cancel()
		e.within(e.ttl/10, "the wait", func() {
			err := q.Wait(ctx, e.claim("name"))
			slow := e.harness.uneven && err != nil // the command that queues it may not have been answered yet
			if ctx.Err() == nil || !slow && !errors.Is(err, context.DeadlineExceeded) {
				e.Errorf("wait: %v", err)
			}
		})
	})},
}

func queued(run func(e *env, q driver.Queuer, holder driver.Driver)) func(*env) {
	return func(e *env) {
		d := e.Driver()
		q, ok := d.(driver.Queuer)
		if !ok {
			e.lacks("no line")
		}
		if c, ok := d.(driver.IdleCloser); ok {
			defer func() { e.noError(c.CloseIdle(e.Context())) }()
		}
		run(e, q, e.Driver())
	}
}
