package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

const (
	orders  = "order:{id}"
	reports = "report:{day}"
	stock   = "stock:{sku}"
)

var templates = []string{orders, reports, stock}

// traffic is a shop on a lock service that has a bad day.
type traffic struct {
	store *memlock.Store
	link  *drivertest.Link
	locks *core.Locker
	slow  atomic.Bool // the observer is
	tasks sync.WaitGroup
}

// load makes traffic for so long: calm, then an outage of the lock service, then an exporter
// that is too slow, then calm.
func load(ctx context.Context, tel *telemetry.Telemetry, span time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	store := memlock.New()
	t := &traffic{store: store, link: drivertest.NewLink(store)}
	t.link.Delay(time.Millisecond, time.Millisecond)
	o := tel.Observer()
	acquired := o.Acquired
	o.Acquired = func(e core.AcquiredEvent) {
		if t.slow.Load() {
			time.Sleep(50 * time.Millisecond)
		}
		acquired(e)
	}
	var err error
	if t.locks, err = core.New(t.link, core.WithTTL(time.Second), core.WithObserver(o)); err != nil {
		return err
	}
	t.keep(ctx, 16, orders, 40, 30*time.Millisecond, core.WithWait(100*time.Millisecond))
	t.keep(ctx, 8, reports, 20, 1500*time.Millisecond, core.WithMaxHold(1400*time.Millisecond))
	t.keep(ctx, 6, stock, 20, 1100*time.Millisecond, core.WithoutRenewal(), core.WithDedup(50*time.Millisecond))
	t.tasks.Go(func() { t.faults(ctx, span) })
	t.tasks.Wait()
	return t.locks.Close(context.WithoutCancel(ctx))
}

// keep has so many goroutines lock one of n names of a template, again and again, each time
// for up to d.
func (t *traffic) keep(ctx context.Context, goroutines int, template string, n int, d time.Duration, opts ...core.Option) {
	opts = append(opts, core.WithTemplate(template))
	for range goroutines {
		t.tasks.Go(func() {
			for ctx.Err() == nil {
				name := fmt.Sprint(template[:5], random(n))
				bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
				_ = t.locks.Do(bounded, name, func(ctx context.Context) error { // what it comes to is on the dashboard
					return sleep(ctx, random(d))
				}, opts...)
				cancel()
				_ = sleep(ctx, random(20*time.Millisecond))
			}
		})
	}
}

// faults is the bad day, in twelfths of it.
func (t *traffic) faults(ctx context.Context, span time.Duration) {
	at := func(twelfths int) bool { return sleep(ctx, span*time.Duration(twelfths)/12) == nil }
	if !at(3) {
		return
	}
	t.link.All(drivertest.RequestLost, drivertest.OpRelease)
	at(1)
	t.link.All(drivertest.Delivered)
	at(1)
	t.link.All(drivertest.Refused)
	at(1)
	t.link.All(drivertest.Delivered)
	at(1)
	t.slow.Store(true)
	at(1)
	t.slow.Store(false)
	at(1)
	for sleep(ctx, 100*time.Millisecond) == nil { // somebody deletes locks at the server
		_ = t.store.Release(ctx, t.link.LastClaim()) // it may be free
	}
}

func random[N int | time.Duration](n N) N { return rand.N(n) } //nolint:gosec // G404: no secret

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
