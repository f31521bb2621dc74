package drivertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// allCases test leases of several names. Every backend runs them.
var allCases = []testCase{
	{name: "SeveralNamesAreHeldTogetherOrNotAtAll", run: func(e *env) {
		locks, other := e.locker(e.Driver()), e.locker(e.Driver())
		names := []string{"c", "a", "b", "a"} // in slots of their own, in a Cluster
		x, err := locks.AcquireAll(e.Context(), names, core.WithWait(0))
		e.noError(err)
		if got := x.Names(); !slices.Equal(got, []string{"a", "b", "c"}) {
			e.Errorf("names %q", got)
		}
		for _, name := range x.Names() {
			if _, err := other.TryAcquire(e.Context(), name); !errors.Is(err, core.ErrHeld) {
				e.Errorf("%q: %v", name, err)
			}
		}
		if _, err := other.AcquireAll(e.Context(), []string{"0", "1", "c"}, core.WithWait(0)); !errors.Is(err, core.ErrHeld) {
			e.Errorf("all of which one is held: %v", err)
		}
		y, err := locks.AcquireAll(e.Context(), []string{"0", "1"}, core.WithWait(0))
		e.noError(err) // nothing is left of those that were not
		e.noError(y.Release(e.Context()))
		e.noError(x.Err())
		e.noError(x.Release(e.Context()))
		y, err = other.AcquireAll(e.Context(), names, core.WithWait(0))
		e.noError(err)
		e.noError(y.Release(e.Context()))
	}},
	{name: "TransfersBetweenManyAccountsNeitherMeetNorHang", run: func(e *env) {
		lockers := []*core.Locker{e.locker(e.Driver()), e.locker(e.Driver())}
		accounts := []string{"ann", "bob", "cyd"}
		balance := make(map[string]int, len(accounts))
		var maps sync.Mutex // a map is no three variables
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(e.Context(), time.Minute)
		defer cancel()
		for i := range 6 {
			from, to := accounts[i%3], accounts[(i+1+i/3)%3]
			wg.Go(func() {
				for range 5 {
					x, err := lockers[i%2].AcquireAll(ctx, []string{from, to})
					if err != nil {
						e.Error(err)
						return
					}
					maps.Lock()
					a, b := balance[from], balance[to]
					maps.Unlock()
					time.Sleep(e.ttl / 1000)
					maps.Lock()
					balance[from], balance[to] = a-1, b+1
					maps.Unlock()
					if err := x.Release(ctx); err != nil {
						e.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if sum := balance["ann"] + balance["bob"] + balance["cyd"]; sum != 0 {
			e.Errorf("%v: %d out of nothing", balance, sum)
		}
	}},
}
