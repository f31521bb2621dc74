package drivertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// degradedCases test services that cannot answer, and work that goes on without them.
var degradedCases = []testCase{
	{name: "AServiceThatCannotBeReachedSaysSo", gone: true, run: func(e *env) {
		d, c := e.Unreachable(), e.claim("name")
		calls := map[string]func(ctx context.Context) error{
			"acquire": func(ctx context.Context) error { _, err := d.Acquire(ctx, c); return err },
			"renew":   func(ctx context.Context) error { return d.Renew(ctx, []driver.Claim{c})[0] },
			"release": func(ctx context.Context) error { return d.Release(ctx, c) },
		}
		for what, call := range calls {
			ctx, cancel := context.WithTimeout(e.Context(), 2*time.Second)
			err := call(ctx)
			cancel()
			if !driver.CannotAnswer(err) {
				e.Errorf("%s: %v is no driver.CannotAnswer", what, err)
			}
		}
	}},
	{name: "AnAnswerIsNoOutage", run: func(e *env) {
		d, mine := e.Driver(), e.claim("name")
		e.grant(d, mine)
		_, held := d.Acquire(e.Context(), e.claim("name"))
		forged := mine
		forged.Token = token()
		for _, err := range []error{held, d.Release(e.Context(), forged), d.Renew(e.Context(), []driver.Claim{forged})[0]} {
			if err == nil || driver.CannotAnswer(err) {
				e.Errorf("%v", err)
			}
		}
		// core asks so whether an outage is over.
		probe := driver.Claim{Name: "free", Token: token()}
		if errs := d.Renew(e.Context(), []driver.Claim{probe}); !errors.Is(errs[0], driver.ErrNotOwner) {
			e.Errorf("a probe: %v", errs[0])
		}
	}},
	{name: "WhatOtherSoftwareWroteIsNoOutage", other: true, run: func(e *env) {
		d := e.Driver()
		e.Overwrite("name")
		if _, err := d.Acquire(e.Context(), e.claim("name")); err == nil || driver.CannotAnswer(err) {
			e.Errorf("%v", err)
		}
	}},
	{name: "LocalOnlyWorkGoesOnUntilTheServiceIsBack", run: func(e *env) {
		link := NewLink(e.Driver())
		locks := e.briefly(e.locker(link))
		work := goesOn{env: e, locks: locks}
		for _, fate := range []Fate{Refused, RequestLost, ReplyLost} {
			link.All(fate)
			if n := work.degraded(); n != 12 {
				e.Errorf("fate %d: %d of 12 were degraded", fate, n)
			}
			link.Heal()
			e.eventually("leases are real again", func() bool { return work.degraded() == 0 })
			e.free()
		}
	}},
}

// goesOn is work that does not stop for an outage.
type goesOn struct {
	*env
	locks *core.Locker
}

// degraded lets 12 goroutines hold the name, one at a time, and returns how many of their leases were
// degraded.
func (g goesOn) degraded() int64 {
	g.Helper()
	var (
		wg          sync.WaitGroup
		inside, all atomic.Int64
	)
	for range 12 {
		wg.Go(func() {
			err := g.locks.Do(g.Context(), "name", func(ctx context.Context) error {
				if n := inside.Add(1); n != 1 {
					g.Errorf("%d at once", n)
				}
				defer inside.Add(-1)
				if x, _ := core.FromContext(ctx); x.Degraded() {
					all.Add(1)
				}
				return nil
			}, core.OnUnavailable(core.LocalOnly))
			if err != nil {
				g.Error(err)
			}
		})
	}
	wg.Wait()
	return all.Load()
}
