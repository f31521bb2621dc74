package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
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
		worker:      func(ctx context.Context, r *report) worker { return &held{hoard: hoard{report: r, ctx: ctx}, n: n} },
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
	hoard

	n int
}

func (h *held) prepare(e *env) error {
	if e.Quick {
		h.n /= 100
	}
	l := &loop{report: &report{}, ctx: h.ctx, goroutines: crowd} // connections belong to no lease
	return l.prepare(e)
}

func (h *held) measure(e *env) error {
	names := make([]string, h.n)
	for i := range names {
		names[i] = e.name(i)
	}
	h.kept = make([]lease, h.n)
	memory, idle := inUse(), runtime.NumGoroutine()
	h.take(e, func(i int) (lease, error) { return e.locks.lock(h.ctx, names[i]) })
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

// hoard is leases that a process has all at a time.
type hoard struct {
	*report

	ctx  context.Context
	from int // the first place of this process
	kept []lease
	mu   sync.Mutex // protects faults
}

func (h *hoard) take(e *env, lock func(i int) (lease, error)) {
	each(len(h.kept), func(i int) {
		x, err := lock(i)
		h.mu.Lock()
		defer h.mu.Unlock()
		if err != nil {
			h.failed(err)
			return
		}
		h.kept[i] = x
		h.enter(e.section.place(h.from+i), e.who(h.from+i), fenceOf(x))
	})
}

// finish releases them, and counts those that were lost.
func (h *hoard) finish(e *env) error {
	each(len(h.kept), func(i int) {
		x := h.kept[i]
		if x == nil {
			return // counted as failed
		}
		gone := lost(x)
		h.mu.Lock()
		h.leave(e.section.place(h.from+i), e.who(h.from+i))
		if gone {
			h.Figures["lost"]++
		}
		h.mu.Unlock()
		if err := x.Release(h.ctx); err != nil {
			h.mu.Lock()
			h.failed(err)
			h.mu.Unlock()
		}
	})
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
