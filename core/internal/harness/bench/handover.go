package main

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

func handoverScenario() scenario {
	return scenario{
		name:  "handover",
		title: "Hand-over: from a release to the next holder, in another process",
		about: "Two processes take turns. The one that waits has lined up when the other one begins to hold, for 2 to 12 ms at random; " +
			"the time runs from the call of Release to the return of Acquire.",
		contestants: slices.Concat(ours, waitingNames),
		procs:       2,
		places:      1,
		length:      3,
		worker:      func(ctx context.Context, r *report) worker { return &handover{r, ctx} },
		figures: func(r run) map[string]float64 {
			waits := sorted(r.Waits)
			return map[string]float64{
				"p50":     milliseconds(percentile(waits, 0.50)),
				"p99":     milliseconds(percentile(waits, 0.99)),
				"samples": float64(len(waits)),
			}
		},
		columns: []column{
			{"p50", "p50, ms", "%.2f"},
			{"p99", "p99, ms", "%.2f"},
			{"samples", "hand-overs per round", "%.0f"},
		},
		goals: []goal{
			atMost("p50", 1, rueidisNames...),
			atMost("p99", 1, rueidisNames...),
		},
	}
}

// handover is two processes that take turns with one name.
type handover struct {
	*report

	ctx context.Context
}

func (h *handover) prepare(e *env) error {
	for range 20 { // connections and scripts; beside each other, so they warm up waiting too
		x, err := e.locks.lock(h.ctx, e.name(0))
		if err != nil {
			return err
		}
		if err := x.Release(h.ctx); err != nil {
			return err
		}
	}
	return nil
}

func (h *handover) measure(e *env) error {
	until := time.Now().Add(e.Length)
	ctx, cancel := patient(h.ctx, until)
	defer cancel()
	for mine := e.Proc == 0; ; mine = false {
		if !mine { // the other one has it now: line up behind it
			if err := e.baton.await(until.Add(patience)); err != nil {
				h.failed(err)
				return nil
			}
		}
		if err := h.turn(ctx, e); err != nil {
			h.failed(cmp.Or(context.Cause(ctx), err))
			return nil
		}
		if time.Now().After(until) {
			return nil
		}
	}
}

func (h *handover) turn(ctx context.Context, e *env) error {
	place, who := e.section.place(0), e.who(0)
	x, err := e.locks.lock(ctx, e.name(0))
	if err != nil {
		return err
	}
	now := monotonic()
	if from := place.freedBy.Load(); from != 0 && from != who {
		h.Waits = append(h.Waits, now-time.Duration(place.freedAt.Load()))
	}
	h.enter(place, who, fenceOf(x))
	if err := e.baton.pass(); err != nil {
		return err
	}
	time.Sleep(2*time.Millisecond + rand.N(10*time.Millisecond)) //nolint:gosec // G404: no secret
	h.leave(place, who)
	place.freedBy.Store(who)
	place.freedAt.Store(int64(monotonic()))
	return x.Release(ctx)
}

func (h *handover) finish(*env) error { return nil }
