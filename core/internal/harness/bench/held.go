package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// heldPeer is rueidislock in the only configuration that can do this: without NoLoopTracking
// each renewal invalidates the key for its own client, which then renews again. With 10,000
// leases it loses many, and takes a minute to release the others.
const heldPeer = "rueidislock noloop"

// heldScenario is n leases that nothing happens to, but their watchdog.
func heldScenario(n int) scenario {
	return scenario{
		name:  fmt.Sprintf("held-%d", n),
		title: fmt.Sprintf("%d held leases under the watchdog, TTL 10 s", n),
		about: "CPU time, commands and script calls of the process that holds them, over one period of the contestant's watchdog, and its goroutines " +
			"over another one; memory is heap and stacks after a collection, without the names.",
		contestants: slices.Concat(ours, []string{heldPeer}),
		procs:       1,
		places:      n,
		length:      1,
		worker: func(ctx context.Context) (worker, *report) {
			h := &held{report: &report{Figures: map[string]float64{}}, ctx: ctx, n: n}
			return h, h.report
		},
		figures: func(r run) map[string]float64 {
			each := r.Figures["leases"] * r.Figures["seconds"]
			return map[string]float64{
				"cpu":        r.Figures["cpu"] / each * 1e6,
				"bytes":      r.Figures["bytes"] / r.Figures["leases"],
				"goroutines": r.Figures["goroutines"],
				"scripts":    r.scripts() / each,
				"commands":   r.commands() / each,
				"lost":       r.Figures["lost"],
			}
		},
		columns: []column{
			{"cpu", "client CPU per lease, µs/s", "%.2f"},
			{"bytes", "bytes per lease", "%.0f"},
			{"goroutines", "goroutines more than idle", "%.0f"},
			{"scripts", "script calls/s per lease", "%.4f"},
			{"commands", "commands/s per lease", "%.4f"},
			{"lost", "lost", "%.0f"},
		},
		goals: []goal{
			atMost("goroutines", 32),
			atMost("bytes", 600),
			atMost("scripts", 0.01),
			atMost("cpu", 0.25, heldPeer),
		},
	}
}

// crowd is how many goroutines acquire and release the leases.
const crowd = 64

// held is a process that holds many leases.
type held struct {
	*report

	ctx    context.Context
	n      int
	leases []lease
}

func (h *held) prepare(e *env) error {
	if e.Quick {
		h.n /= 100
	}
	h.leases = make([]lease, h.n)
	l := &loop{report: &report{}, ctx: h.ctx, goroutines: crowd} // connections belong to no lease
	return l.prepare(e)
}

func (h *held) measure(e *env) error {
	names := make([]string, h.n)
	for i := range names {
		names[i] = e.name(i)
	}
	memory, idle := inUse(), runtime.NumGoroutine()
	var mu sync.Mutex // protects faults
	each(h.n, func(i int) {
		x, err := e.locks.lock(h.ctx, names[i])
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			h.failed(err)
			return
		}
		h.leases[i] = x
		h.enter(e.section.place(i), e.who(i), fenceOf(x))
	})
	h.Figures["leases"] = float64(h.n)
	h.Figures["bytes"] = inUse() - memory
	runtime.KeepAlive(names)

	period := e.contestant.renewEvery
	if e.Quick {
		period = e.Length
	}
	most := 0
	for end := time.Now().Add(period); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		most = max(most, runtime.NumGoroutine()-idle)
	}
	h.Figures["goroutines"] = float64(most)

	before, cpu := e.traffic.counts(), cpuTime()
	time.Sleep(period) // counting goroutines costs as much as the renewals of 3,000 leases
	h.Sent = e.traffic.since(before)
	h.Figures["cpu"] = (cpuTime() - cpu).Seconds()
	h.Figures["seconds"] = period.Seconds()
	return nil
}

func (h *held) finish(e *env) error {
	var gone atomic.Int64
	var mu sync.Mutex // protects faults
	each(h.n, func(i int) {
		x := h.leases[i]
		if x == nil {
			return // counted as failed
		}
		if lost(x) {
			gone.Add(1)
		}
		mu.Lock()
		h.leave(e.section.place(i), e.who(i))
		mu.Unlock()
		if err := x.Release(h.ctx); err != nil {
			mu.Lock()
			h.failed(err)
			mu.Unlock()
		}
	})
	h.Figures["lost"] = float64(gone.Load())
	return nil
}

// each does something n times, by a number of goroutines.
func each(n int, do func(i int)) {
	var wg sync.WaitGroup
	for w := range crowd {
		wg.Go(func() {
			for i := w; i < n; i += crowd {
				do(i)
			}
		})
	}
	wg.Wait()
}

// inUse is the memory of heap and stacks, after what is garbage has gone.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools kept over the first one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) + float64(m.StackInuse)
}
