package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// outageTTL outlasts the time in which servers come back, on a busy machine.
const outageTTL = time.Minute

// outageCases kill the servers.
var outageCases = []testCase{
	{name: "AKilledServerIsUnavailableAndComesBack", run: func(e *env) {
		if e.harness.OpenServers == nil {
			e.lacks("the harness has no servers to kill")
		}
		service, servers := e.harness.OpenServers(e.T)
		locks, other := e.locker(service.Driver()), e.locker(service.Driver())
		take := core.WithTTL(outageTTL)
		x, err := locks.Acquire(e.Context(), "name", take, core.WithRenewEvery(e.ttl/4))
		e.noError(err)
		e.eventually("the other process is connected", func() bool {
			_, err := other.TryAcquire(e.Context(), "name")
			return errors.Is(err, core.ErrHeld)
		})
		servers.Kill()
		e.eventually("it is missed", func() bool { // PostgreSQL's processes outlive it by a moment, and answer
			_, err := other.TryAcquire(e.Context(), "name")
			if !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrHeld) {
				e.Fatalf("while the server is down: %v", err)
			}
			return errors.Is(err, core.ErrUnavailable)
		})
		servers.Restart()
		if servers.Forgetful {
			e.eventually("the holder hears of its loss", func() bool { return x.Err() != nil })
			e.lost(x, core.ReasonTaken)
		} else {
			e.renewed(x)
			e.eventually("the other process hears of the holder", func() bool {
				y, err := other.TryAcquire(e.Context(), "name")
				if err == nil {
					e.Fatalf("two holders: fences %d and %d", x.Fence(), y.Fence())
				}
				return errors.Is(err, core.ErrHeld)
			})
			e.noError(x.Release(e.Context()))
		}
		y, err := other.Acquire(e.Context(), "name", take)
		e.noError(err)
		if y.Fence() != 0 && y.Fence() <= x.Fence() {
			e.Errorf("fence %d after %d", y.Fence(), x.Fence())
		}
		e.noError(y.Release(e.Context()))
	}},
}
