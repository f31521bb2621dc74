package main

import (
	"context"
	"fmt"
	"slices"
)

// pairScenarios lock and unlock names that nobody else wants.
func pairScenarios() []scenario {
	alone := pairScenario(1)
	alone.name = "pair"
	alone.title = "Uncontended: 1 goroutine"
	alone.goals = []goal{
		atLeast("rate", 0.95, floorName),
		atMost("server", 1.5, "bsm 10 ms"),
	}
	crowd := pairScenario(64)
	crowd.goals = []goal{
		atLeast("rate", 0.9, autoFloorName),
		atLeast("rate", 1.6, rueidisNames...),
		atMost("server", 1.5, "bsm 10 ms"),
	}
	return []scenario{alone, crowd}
}

func pairScenario(goroutines int) scenario {
	return scenario{
		name:        fmt.Sprintf("pairs-%d", goroutines),
		title:       fmt.Sprintf("Uncontended: %d goroutines, distinct names", goroutines),
		about:       "One process; each goroutine acquires and releases a name of its own, with a cancellable context.",
		contestants: slices.Concat(ours, []string{floorName, autoFloorName, "bsm 10 ms", "redsync"}, rueidisNames),
		procs:       1,
		places:      goroutines,
		length:      1,
		worker:      func(ctx context.Context, r *report) worker { return &loop{report: r, ctx: ctx, goroutines: goroutines} },
		figures:     loopFigures,
		columns: []column{
			{"rate", "pairs/s", "%.0f"},
			{"p99", "p99 of acquire, ms", "%.2f"},
			{"commands", "commands per pair", "%.2f"},
			{"server", "server time per pair, µs", "%.1f"},
		},
	}
}

// loopFigures are those of a loop.
func loopFigures(r run) map[string]float64 {
	n := r.acquisitions()
	waits := sorted(r.Waits)
	return map[string]float64{
		"rate":     n / r.length.Seconds(),
		"jain":     jain(r.Turns),
		"p50":      milliseconds(percentile(waits, 0.50)),
		"p99":      milliseconds(percentile(waits, 0.99)),
		"max":      milliseconds(percentile(waits, 1)),
		"commands": r.commands() / n,
		"server":   float64(r.server.Microseconds()) / n,
	}
}
