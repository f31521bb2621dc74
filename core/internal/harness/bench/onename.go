package main

import (
	"context"
	"fmt"
	"slices"
)

// oneNameScenarios are many who want the same name all the time.
func oneNameScenarios() []scenario {
	local, wide := oneNameScenario(1, 64), oneNameScenario(8, 4)
	local.name = "one-name"
	local.title = "One name, 64 goroutines of one process"
	local.goals = []goal{
		atLeast("rate", 40, waitingNames...),
		atLeast("rate", 40, waitingNames...).ofFair(),
		atLeast("jain", 0.99),
		atMost("commands", 0.05),
	}
	wide.name = "one-name-wide"
	wide.title = "One name, 8 processes with 4 goroutines each"
	wide.goals = []goal{
		atLeast("rate", 8, waitingNames...),
		atLeast("rate", 8, waitingNames...).ofFair(),
		atLeast("jain", 0.99),
		atMost("p99", 1.0/15, waitingNames...),
		atMost("commands", 0.5),
	}
	return []scenario{local, wide}
}

func oneNameScenario(procs, goroutines int) scenario {
	return scenario{
		about: fmt.Sprintf("Each of the %d goroutines acquires the name and releases it at once, over and over. "+
			"Waits are of all acquisitions that began in time; the rate is of those granted in time.", procs*goroutines),
		contestants: slices.Concat(ours, waitingNames),
		procs:       procs,
		places:      1,
		length:      1,
		worker: func(ctx context.Context, r *report) worker {
			return &loop{report: r, ctx: ctx, goroutines: goroutines, oneName: true}
		},
		figures: loopFigures,
		columns: []column{
			{"rate", "acquisitions/s", "%.0f"},
			{"jain", "Jain", "%.3f"},
			{"p50", "wait p50, ms", "%.2f"},
			{"p99", "p99, ms", "%.2f"},
			{"max", "longest, ms", "%.1f"},
			{"commands", "commands per acquisition", "%.3f"},
		},
	}
}
