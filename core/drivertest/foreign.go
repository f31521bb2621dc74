package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

var foreignCases = []testCase{
	{name: "AForeignValueIsHeldAndNeverOverwritten", other: true, run: func(e *env) {
		d, c := e.Driver(), e.claim("name")
		e.Overwrite("name")
		_, err := d.Acquire(e.Context(), c)
		if held, ok := errors.AsType[*driver.Held](err); !ok || held.Label != "" {
			e.Errorf("acquire: %v", err)
		}
		if err := d.Release(e.Context(), c); !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("release: %v", err)
		}
		if err := d.Renew(e.Context(), []driver.Claim{c})[0]; !errors.Is(err, driver.ErrNotOwner) {
			e.Errorf("renewal: %v", err)
		}
		if _, err := d.Acquire(e.Context(), c); err == nil {
			e.Error("the foreign value is gone")
		}
		e.Delete("name")
		e.grant(d, c)
	}},
	{name: "AWaiterGetsWhatAForeignHolderLeaves", other: true, run: func(e *env) {
		locks := e.locker(e.Driver())
		e.Overwrite("name")
		got := make(chan error, 1)
		go func() {
			x, err := locks.Acquire(e.Context(), "name")
			if err == nil {
				err = x.Release(e.Context())
			}
			got <- err
		}()
		time.Sleep(e.ttl / 2)
		e.Delete("name")
		e.within(2*time.Second, "noticing that it is free", func() { e.noError(<-got) })
	}},
	{name: "AnOverwrittenLeaseIsLostAndNotTouched", other: true, run: func(e *env) {
		locks := e.locker(e.Driver())
		x, err := locks.Acquire(e.Context(), "name")
		e.noError(err)
		e.Overwrite("name")
		e.within(e.longTTL(), "the notice of the loss", func() { <-x.Context().Done() })
		e.lost(x, core.ReasonTaken)
		if err := x.Release(e.Context()); !errors.Is(err, core.ErrLost) {
			e.Errorf("release: %v", err)
		}
		if _, err := e.locker(e.Driver()).TryAcquire(e.Context(), "name"); !errors.Is(err, core.ErrHeld) {
			e.Errorf("the foreign value is gone: %v", err)
		}
	}},
	{name: "ADeletedLeaseIsLost", other: true, run: func(e *env) {
		locks := e.locker(e.Driver())
		x, err := locks.Acquire(e.Context(), "name")
		e.noError(err)
		e.Delete("name")
		e.within(e.longTTL(), "the notice of the loss", func() {
			e.eventually("it hears of it", func() bool { return x.Err() != nil })
		})
		e.lost(x, core.ReasonTaken)
		y, err := e.locker(e.Driver()).Acquire(e.Context(), "name")
		e.noError(err)
		if x.Fence() != 0 && y.Fence() <= x.Fence() {
			e.Errorf("fence %d after %d", y.Fence(), x.Fence())
		}
		if err := x.Release(e.Context()); !errors.Is(err, core.ErrLost) {
			e.Errorf("release of what was lost: %v", err)
		}
		e.noError(y.Release(e.Context()))
	}},
}
