package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

func waitingScenario() scenario {
	return scenario{
		name:  "waiting",
		title: "What waiting costs: 1,000 goroutines of one process on a name that another one holds",
		about: "Commands that the waiting process sends, per second, once all have lined up; and the CPU time of that process.",

		contestants: slices.Concat(ours, waitingNames),
		procs:       2,
		places:      1,
		length:      3,
		worker:      func(ctx context.Context, r *report) worker { return &waiting{report: r, ctx: ctx} },
		figures: func(r run) map[string]float64 {
			return map[string]float64{
				"commands": r.commands() / r.length.Seconds(),
				"cpu":      r.Figures["cpu"] / r.length.Seconds() * 100,
			}
		},
		columns: []column{
			{"commands", "commands/s", "%.1f"},
			{"cpu", "CPU, % of one core", "%.1f"},
		},
		goals: []goal{atMost("commands", 3)},
	}
}

// waiting is a holder, process 0, and those who wait for it.
type waiting struct {
	*report

	ctx  context.Context
	held lease // of process 0
}

func (w *waiting) prepare(e *env) error {
	if e.Proc != 0 {
		return nil
	}
	var err error
	w.held, err = e.locks.lock(w.ctx, e.name(0))
	if err == nil {
		w.enter(e.section.place(0), e.who(0), fenceOf(w.held))
	}
	return err
}

func (w *waiting) measure(e *env) error {
	if e.Proc == 0 {
		return nil
	}
	goroutines, settle := 1000, 500*time.Millisecond
	if e.Quick {
		goroutines, settle = 50, 50*time.Millisecond
	}
	ctx, cancel := context.WithCancel(w.ctx)
	var wg sync.WaitGroup
	var mu sync.Mutex // protects faults
	for g := range goroutines {
		wg.Go(func() {
			x, err := e.locks.lock(ctx, e.name(0))
			if ctx.Err() != nil {
				return // as it was meant to end
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				w.failed(err)
				return
			}
			w.visit(e.section.place(0), e.who(g), fenceOf(x))
			_ = x.Release(ctx)
		})
	}
	time.Sleep(settle)
	before, cpu := e.traffic.counts(), cpuTime()
	time.Sleep(e.Length)
	w.Sent = e.traffic.since(before)
	w.Figures["cpu"] = (cpuTime() - cpu).Seconds()
	cancel()
	wg.Wait()
	return nil
}

func (w *waiting) finish(e *env) error {
	if e.Proc != 0 {
		return nil
	}
	w.leave(e.section.place(0), e.who(0))
	return w.held.Release(w.ctx)
}
