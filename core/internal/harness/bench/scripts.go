package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// renewalSweep is of commands for exactly so many leases.
func renewalSweep() sweep {
	return sweep{
		name:  "batch",
		title: "Leases that one command renews",
		about: "One caller sends such commands, one after the other, for a second. The watchdog puts up to 128 leases into each.",
		what:  "leases",
		sizes: sizes(0, 1, 2, 4, 8, 16, 32, 64, 128),
		columns: []growing{
			{column{"call", "server time of a command, µs", "%.1f"}, 1.1},
			{column{"each", "server time of a lease, µs", "%.2f"}, 0.1},
		},
		scenario: func(z size) scenario {
			return scenario{
				procs: 1, places: 1, length: 1,
				worker: func(ctx context.Context) (worker, *report) {
					w := &renewals{report: &report{}, ctx: ctx, n: z.n}
					return &inFleet{w, ctx, 1, ttl, false}, w.report
				},
				figures: func(r run) map[string]float64 {
					call := microseconds(r.server) / r.commands()
					return map[string]float64{"call": call, "each": call / float64(z.n)}
				},
			}
		},
	}
}

// renewals is a driver's caller that renews.
type renewals struct {
	*report

	ctx    context.Context
	n      int
	store  *redislock.Store
	claims []driver.Claim
}

func (w *renewals) prepare(e *env) error {
	w.store = e.locks.(*fleet).member(0).store
	for i := range w.n {
		c := driver.Claim{Name: e.name(i), Token: token(i), TTL: ttl}
		if _, err := w.store.Acquire(w.ctx, c); err != nil {
			return err
		}
		w.claims = append(w.claims, c)
	}
	return nil
}

func (w *renewals) measure(e *env) error {
	before := e.traffic.counts()
	for end := time.Now().Add(e.Length); time.Now().Before(end); {
		for _, err := range w.store.Renew(w.ctx, w.claims) {
			if err != nil {
				w.failed(err)
			}
		}
	}
	w.Sent = e.traffic.since(before)
	return nil
}

func (w *renewals) finish(*env) error { return releaseAll(w.ctx, w.store, w.claims) }

// deadSweep is of a queue that nobody of those who stood there has left.
func deadSweep() sweep {
	return sweep{
		name:  "dead",
		title: "Dead places in a queue",
		about: "All processes in the queue for a name have died at once. Then its holder releases it, and somebody else takes it. " +
			"No call blocks the server for longer than it takes to drop 100 places.",
		what:  "places",
		sizes: sizes(0, 100, 1000, 10_000, 100_000),
		columns: []growing{
			{column{"commands", "commands", "%.0f"}, 1.1},
			{column{"call", "server time of a command, µs", "%.0f"}, 0.5},
			{column{"all", "server time of all, ms", "%.2f"}, 1.1},
			{column{"wait", "until it is taken, ms", "%.1f"}, math.Inf(1)},
		},
		scenario: func(z size) scenario {
			return scenario{
				procs: 1, places: 1, length: 2, patience: 5 * time.Minute,
				worker: func(ctx context.Context) (worker, *report) {
					w := &dying{report: &report{Figures: map[string]float64{}}, ctx: ctx, n: z.n}
					return &inFleet{w, ctx, 1, ttl, false}, w.report
				},
				figures: func(r run) map[string]float64 {
					return map[string]float64{
						"commands": r.commands(),
						"call":     microseconds(r.server) / r.commands(),
						"all":      milliseconds(r.server),
						"wait":     r.Figures["wait"],
					}
				},
			}
		},
	}
}

// dying is a driver's callers that wait for a name, and are heard of no more.
type dying struct {
	*report

	ctx        context.Context
	n          int
	store      *redislock.Store
	held, next driver.Claim
}

// brief is a TTL whose places in a queue live for 300 ms.
const brief = 300 * time.Millisecond

func (w *dying) prepare(e *env) error {
	if e.Quick {
		w.n /= 10
	}
	w.store = e.locks.(*fleet).member(0).store
	w.held = driver.Claim{Name: e.name(0), Token: token(0), TTL: 5 * time.Minute}
	w.next = driver.Claim{Name: e.name(0), Token: token(1), TTL: ttl}
	if _, err := w.store.Acquire(w.ctx, w.held); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for g := range crowd * 8 {
		wg.Go(func() {
			for i := g; i < w.n; i += crowd * 8 {
				ctx, cancel := context.WithTimeout(w.ctx, 50*time.Millisecond)
				c := driver.Claim{Name: e.name(0), Token: fmt.Sprintf("place-%016d", i), TTL: brief}
				_, _ = w.store.Wait(ctx, c) // in vain
				cancel()
			}
		})
	}
	wg.Wait()
	time.Sleep(2 * brief)
	return nil
}

func (w *dying) measure(e *env) error {
	time.Sleep(e.Length / 4) // until the server's statistics have been read
	before, began := e.traffic.counts(), time.Now()
	if err := w.store.Release(w.ctx, w.held); err != nil {
		return err
	}
	if _, err := w.store.Acquire(w.ctx, w.next); err != nil {
		return err
	}
	w.Figures["wait"] = milliseconds(time.Since(began))
	w.Sent = e.traffic.since(before)
	return nil
}

func (w *dying) finish(*env) error { return w.store.Release(w.ctx, w.next) }

func releaseAll(ctx context.Context, d driver.Driver, claims []driver.Claim) error {
	for _, c := range claims {
		if err := d.Release(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// token is as long as those of core.
func token(i int) string { return strings.Repeat("t", 14) + fmt.Sprintf("%08d", i) }
