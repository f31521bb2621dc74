package bench

import (
	"fmt"
	"slices"
	"time"
)

// scenario is one table: what is done, by whom, and what is shown of it.
type scenario struct {
	name  string // for -only
	title string
	about string // how it is measured

	rows    []row
	length  float64 // of a run, in units of -time; 0 is a period of the contestant's watchdog
	worker  func() worker
	columns []column
}

// row is a contestant at a size.
type row struct {
	name       string
	contestant string
	size       size
}

// column is a figure of a run.
type column struct {
	title  string
	format string // of fmt, for a float64
	of     func(r *run) float64
}

// run is what came out of one run of a contestant: the reports of its processes, added up.
type run struct {
	report

	size   size
	length time.Duration
	cpu    time.Duration // used by the server, for all that it does, beyond that of an idle one
	grown  float64       // of the server's memory, at the end
}

func (r *run) acquisitions() (sum float64) {
	for _, n := range r.Turns {
		sum += float64(n)
	}
	return sum
}

func (r *run) commands() (sum float64) {
	for _, n := range r.Sent {
		sum += float64(n)
	}
	return sum
}

func perSecond(title string) column {
	return column{title + "/s", "%.0f", func(r *run) float64 { return r.acquisitions() / r.length.Seconds() }}
}

func waited(title string, part float64) column {
	return column{title + ", ms", "%.2f", func(r *run) float64 { return milliseconds(percentile(sorted(r.Waits), part)) }}
}

// figure is one that the workers have counted, for each of their leases.
func figure(title, format string, of func(f map[string]float64) float64) column {
	return column{title, format, func(r *run) float64 { return of(r.Figures) }}
}

var (
	fairness       = column{"Jain", "%.3f", func(r *run) float64 { return jain(r.Turns) }}
	commandsOfTurn = column{"commands for each", "%.3f", func(r *run) float64 { return r.commands() / r.acquisitions() }}
	serverOfTurn   = column{"server CPU for each, µs", "%.1f", func(r *run) float64 { return microseconds(r.cpu) / r.acquisitions() }}
	commandRate    = column{"commands/s", "%.1f", func(r *run) float64 { return r.commands() / r.length.Seconds() }}
	serverLoad     = column{"server CPU, ms/s", "%.3g", func(r *run) float64 { return milliseconds(r.cpu) / r.length.Seconds() }}
	serverOfCmd    = column{"server CPU of a command, µs", "%.1f", func(r *run) float64 { return microseconds(r.cpu) / r.commands() }}
	serverMemory   = column{"server memory for each, bytes", "%.0f", func(r *run) float64 { return r.grown / float64(r.size.N) }}
	losses         = figure("lost", "%.0f", func(f map[string]float64) float64 { return f["lost"] })
)

// comparisons are the tables of contestants.
func comparisons() []scenario {
	pairs := []column{perSecond("pairs"), waited("p99 of acquire", 0.99), commandsOfTurn, serverOfTurn}
	contended := []column{
		perSecond("acquisitions"), fairness, waited("wait p50", 0.5), waited("p99", 0.99), waited("longest", 1), commandsOfTurn,
	}
	return []scenario{{
		name: "pair", title: "Uncontended: 1 goroutine",
		about: "It acquires and releases a name, with a cancellable context.",
		rows:  contest(size{N: 1, Members: 1, Procs: 1}, append([]string{floorName}, waitingPeers...)...), length: 1, columns: pairs,
		worker: func() worker { return loop{} },
	}, {
		name: "pairs-64", title: "Uncontended: 64 goroutines, distinct names",
		about: "One process; each goroutine acquires and releases a name of its own, with a cancellable context.",
		rows:  contest(size{N: 64, Members: 1, Procs: 1}, append([]string{autoFloorName}, waitingPeers...)...), length: 1, columns: pairs,
		worker: func() worker { return loop{} },
	}, {
		name: "one-name", title: "One name, 64 goroutines of one process",
		about: "Each of the 64 goroutines acquires the name and releases it at once, over and over. Waits are of all acquisitions that began in time; " +
			"the rate is of those granted in time.",
		rows: contest(size{N: 64, Members: 1, Procs: 1, Names: 1}, waitingPeers...), length: 1, columns: contended,
		worker: func() worker { return loop{} },
	}, {
		name: "one-name-wide", title: "One name, 8 processes with 4 goroutines each",
		about: "As `one-name`.",
		rows:  contest(size{N: 32, Members: 8, Procs: 8, Names: 1}, waitingPeers...), length: 1, columns: contended,
		worker: func() worker { return loop{} },
	}, {
		name: "handover", title: "Hand-over: from a release to the next holder, in another process",
		about: "Two processes take turns. The one that waits has lined up when the other one begins to hold, for 2 to 12 ms at random; " +
			"the time runs from the call of Release to the return of Acquire.",
		rows: contest(size{N: 2, Members: 2, Procs: 2, Names: 1}, waitingPeers...), length: 3,
		columns: []column{
			waited("p50", 0.5), waited("p99", 0.99), {"hand-overs", "%.0f", func(r *run) float64 { return float64(len(r.Waits)) }},
		},
		worker: func() worker { return handover{} },
	}, {
		name: "waiting", title: "What waiting costs: 1,000 goroutines of one process on a name that another one holds",
		about: "Commands that the waiting process sends, once all have lined up; and the CPU time of that process.",
		rows:  contest(size{N: 1000, Members: 2, Procs: 2, Names: 1}, waitingPeers...), length: 3,
		columns: []column{commandRate, {"CPU, % of one core", "%.1f", func(r *run) float64 { return r.Figures["cpu"] / r.length.Seconds() * 100 }}},
		worker:  func() worker { return &waiting{} },
	}, {
		name: "held-10000", title: "10,000 held leases under the watchdog, TTL 10 s",
		about: "CPU time and commands of the process that holds them, over one period of the contestant's watchdog; memory is heap and stacks " +
			"after a collection, without the names.",
		rows: contest(size{N: 10_000, Members: 1, Procs: 1}, "rueidislock"),
		columns: []column{
			figure("client CPU for each, µs/s", "%.2f", func(f map[string]float64) float64 { return f["cpu"] / f["seconds"] / f["leases"] * 1e6 }),
			figure("bytes for each", "%.0f", func(f map[string]float64) float64 { return f["bytes"] / f["leases"] }),
			figure("goroutines more than idle", "%.0f", func(f map[string]float64) float64 { return f["goroutines"] }),
			commandRate, losses,
		},
		worker: func() worker { return &standing{} },
	}}
}

// contest has Holdfast and others at one size.
func contest(z size, peers ...string) (rows []row) {
	for _, name := range append([]string{holdfastName}, peers...) {
		rows = append(rows, row{name, name, z})
	}
	return rows
}

// sweeps are the tables of Holdfast alone, at sizes that grow.
func sweeps() []scenario {
	return []scenario{{
		name: "held", title: "Held leases",
		about: "Nothing happens to the leases but that they are renewed, in one period of the watchdog. Memory is that of the server without its connections.",
		rows:  grown("leases", 0, [][2]int{{100, 1}, {10_000, 1}, {100_000, 1}, {1000, 50}, {10_000, 50}, {100_000, 50}}...),
		columns: []column{
			serverLoad, commandRate,
			{"server CPU of a renewal, µs", "%.2f", func(r *run) float64 { return microseconds(r.cpu) / float64(r.size.N) }},
			{"renewals in a command", "%.1f", func(r *run) float64 { return float64(r.size.N) / r.commands() }},
			serverMemory, losses, // some KB go to something else
		},
		worker: func() worker { return &standing{} },
	}, {
		name: "names", title: "Names that are waited for",
		about: "Each name has a holder in one process and a waiter in another one; one period of the watchdog. Memory is that of the server without its connections, " +
			"the lease included.",
		rows:    grown("names", 0, [][2]int{{10, 2}, {100, 2}, {1000, 2}, {3000, 2}, {20, 20}, {200, 20}, {2000, 20}, {4000, 20}}...),
		columns: []column{serverLoad, commandRate, serverOfCmd, serverMemory},
		worker:  func() worker { return &standing{waiters: true} },
	}, {
		name: "turns", title: "Turns on one name",
		about:   "Each waiter acquires the name and releases it at once, over and over.",
		rows:    grown("waiters", 1, [][2]int{{10, 1}, {1000, 1}, {10_000, 1}, {20, 20}, {320, 20}, {1280, 20}, {200, 200}, {1800, 200}}...),
		length:  2,
		columns: []column{perSecond("acquisitions"), commandsOfTurn, serverOfTurn},
		worker:  func() worker { return loop{} },
	}, {
		name: "pairs", title: "Acquires and releases that share commands",
		about:   "Each goroutine acquires and releases a name of its own, over and over.",
		rows:    grown("goroutines", 0, [][2]int{{1, 1}, {4, 1}, {16, 1}, {64, 1}, {256, 1}, {1024, 1}, {20, 20}, {320, 20}}...),
		length:  2,
		columns: []column{perSecond("pairs"), commandsOfTurn, serverOfTurn},
		worker:  func() worker { return loop{} },
	}}
}

// grown has Holdfast at sizes: so many of something, in so many processes. names are in use, one for each unless told.
func grown(what string, names int, sizes ...[2]int) (rows []row) {
	for _, z := range sizes {
		n, members, procs := z[0], z[1], 1
		if members >= 10 {
			procs = 4
		}
		rows = append(rows, row{fmt.Sprintf("%d %s, %d processes", n, what, members), holdfastName, size{n, members, procs, names}})
	}
	return rows
}

func scenarioNamed(name string) (s scenario, ok bool) {
	all := slices.Concat(comparisons(), sweeps())
	i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
	if i < 0 {
		return s, false
	}
	return all[i], true
}
