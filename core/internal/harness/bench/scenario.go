package main

import (
	"context"
	"slices"
	"time"
)

// scenario is one table: what is done, by whom, and what is to come out.
type scenario struct {
	name  string // for -only
	title string
	about string // how it is measured

	contestants []string
	procs       int
	places      int           // of the section: names in use
	length      float64       // of a run, in units of -time
	patience    time.Duration // for all else of a run; two minutes unless told

	// worker makes one process's part, which fills the report.
	worker func(ctx context.Context, r *report) worker
	// figures are those of one run.
	figures func(r run) map[string]float64
	columns []column
	goals   []goal
}

// column is a figure in a scenario's table. The first one is compared with that of Holdfast.
type column struct {
	figure, title string
	format        string // of fmt, for a float64
}

// run is what came out of one run of a contestant: the reports of its processes, added up.
type run struct {
	report

	length time.Duration
	server time.Duration      // spent on commands of clients
	cpu    time.Duration      // used by the server, for all that it does, beyond that of an idle one
	calls  map[string]float64 // of commands by name, inside scripts too
	grown  float64            // of the server's memory, at the end
}

func (r run) acquisitions() float64 {
	sum := 0
	for _, n := range r.Turns {
		sum += n
	}
	return float64(sum)
}

func (r run) commands() float64 {
	sum := int64(0)
	for _, n := range r.Sent {
		sum += n
	}
	return float64(sum)
}

// scripts are the calls that run a script at the server.
func (r run) scripts() float64 {
	return float64(r.Sent["evalsha"] + r.Sent["eval"] + r.Sent["fcall"])
}

// scenarios are all there are, in the order in which they run.
func scenarios() []scenario {
	return slices.Concat(pairScenarios(), oneNameScenarios(),
		[]scenario{handoverScenario(), waitingScenario(), heldScenario(10_000)})
}

func scenarioNamed(name string) (scenario, bool) {
	all := append(scenarios(), scaleScenarios()...)
	i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
	if i < 0 {
		return scenario{}, false
	}
	return all[i], true
}
