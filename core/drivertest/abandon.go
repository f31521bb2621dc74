package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// abandonCases test callers that leave in the middle of a call, over the backend's own connections.
var abandonCases = []testCase{
	{name: "CallersWhoLeaveAtAnyInstantLeaveNothing", run: func(e *env) {
		const callers, each = 4, 12
		locks := e.locker(e.Driver())
		name := func(i, n int) string { return fmt.Sprintf("name-%d-%d", i, n) }
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for n := range each {
					e.leave(locks, name(i, n), time.Duration(n*callers+i)*e.ttl/2000, i%2 == 0)
				}
			})
		}
		wg.Wait()
		left := time.Now()
		d := e.Driver()
		for i := range callers {
			for n := range each {
				c := e.claim(name(i, n))
				c.TTL = time.Minute
				for {
					_, err := d.Acquire(e.Context(), c)
					if err == nil {
						e.noError(d.Release(e.Context(), c))
						break
					}
					if _, held := errors.AsType[*driver.Held](err); !held {
						e.Fatal(err)
					}
					if time.Since(left) > e.soonTTL() {
						e.Fatalf("%q is still taken", c.Name)
					}
					time.Sleep(e.ttl / 100)
				}
			}
		}
	}},
}

// leave acquires a name, by a call that is given up after a while.
func (e *env) leave(locks *core.Locker, name string, after time.Duration, byHand bool) {
	ctx, cancel := context.WithTimeout(e.Context(), after)
	if byHand {
		ctx, cancel = context.WithCancel(e.Context())
		defer time.AfterFunc(after, cancel).Stop()
	}
	defer cancel()
	x, err := locks.Acquire(ctx, name, core.WithTTL(3*e.soonTTL()))
	switch {
	case err == nil:
		e.noErrorHere(x.Release(e.Context()))
	case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled):
		e.Errorf("%q: %v", name, err)
	}
}
