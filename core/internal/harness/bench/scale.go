package main

import (
	"context"
	"slices"
	"time"
)

// calm is the TTL of leases that are held in a sweep. Costs for each second are those of the default of 10 s,
// times two thirds: a lease is renewed three times in a TTL.
const calm = 15 * time.Second

// sweeps are all there are, in the order in which they run.
func sweeps() []sweep {
	return []sweep{heldSweep(), turnSweep(), namesSweep(), pairSweep()}
}

// These columns are those of most sweeps.
var (
	serverLoad = column{"load", "server CPU, ms/s", "%.3g"}
	commands   = column{"commands", "commands/s", "%.4g"}
)

// rates are the figures of a second in which nothing changes.
func rates(r run) map[string]float64 {
	s := r.length.Seconds()
	return map[string]float64{
		"load":     milliseconds(r.cpu) / s,
		"commands": r.commands() / s,
		"renewals": r.calls["pexpire"],
		"lost":     r.Figures["lost"],
	}
}

// stand is a scenario of what stands still.
func stand(members int, window time.Duration, s still, figures func(r run) map[string]float64) scenario {
	return scenario{
		procs:    hands(members),
		places:   max(1, s.leases),
		length:   seconds(window),
		patience: 10 * time.Minute,
		worker: func(ctx context.Context, r *report) worker {
			return &inFleet{&standing{hoard: hoard{report: r, ctx: ctx}, still: s, procs: hands(members)}, ctx, members, calm}
		},
		figures: figures,
	}
}

func heldSweep() sweep {
	return sweep{
		name:  "held",
		title: "Held leases",
		about: "Nothing happens to the leases, but that they are renewed; TTL 15 s, in one period of 5 s. " +
			"Memory is that of the server without its connections.",
		what: "leases",
		sizes: slices.Concat(
			sizes(1, 100, 1000, 10_000, 100_000), sizes(50, 100, 1000, 10_000, 100_000)),
		columns: []column{
			serverLoad, commands,
			{"each", "server CPU of a renewal, µs", "%.2f"},
			{"shared", "renewals in a command", "%.1f"},
			{"bytes", "server memory of a lease, bytes", "%.0f"}, // some KB go to something else
			{"lost", "lost", "%.0f"},
		},
		scenario: func(z size) scenario {
			return stand(z.by, calm/3, still{leases: z.n}, func(r run) map[string]float64 {
				f := rates(r)
				f["each"] = microseconds(r.cpu) / f["renewals"]
				f["shared"] = f["renewals"] / r.commands()
				f["bytes"] = r.grown / float64(z.n)
				return f
			})
		},
	}
}

func turnSweep() sweep {
	return sweep{
		name:  "turns",
		title: "Turns on one name",
		about: "Each waiter acquires the name and releases it at once, over and over, for a second.",
		what:  "waiters",
		sizes: slices.Concat(sizes(1, 10, 100, 1000, 10_000), sizes(20, 20, 80, 320, 1280), sizes(200, 200, 600, 1800)),
		columns: []column{
			{"rate", "acquisitions/s", "%.0f"},
			{"commands", "commands per acquisition", "%.4f"},
			{"cpu", "server CPU per acquisition, µs", "%.2f"},
		},
		scenario: func(z size) scenario {
			return scenario{
				procs: hands(z.by), places: 1, length: 1,
				worker: func(ctx context.Context, r *report) worker {
					return &inFleet{&loop{report: r, ctx: ctx, goroutines: z.n / hands(z.by), oneName: true}, ctx, z.by, ttl}
				},
				figures: turnFigures,
			}
		},
	}
}

func namesSweep() sweep {
	return sweep{
		name:  "names",
		title: "Names that are waited for",
		about: "Each name has a holder in one process and a waiter in another one; TTL 15 s, in 3 s. Memory is that of the server without its connections, the lease included.",
		what:  "names",
		sizes: slices.Concat(sizes(2, 10, 100, 1000, 3000), sizes(20, 20, 200, 2000, 4000)),
		columns: []column{
			serverLoad, commands,
			{"each", "server CPU of a command, µs", "%.1f"},
			{"bytes", "server memory of a name, bytes", "%.0f"}, // as above
		},
		scenario: func(z size) scenario {
			return stand(z.by, 3*time.Second, still{leases: z.n, each: 1}, func(r run) map[string]float64 {
				f := rates(r)
				f["each"] = microseconds(r.cpu) / r.commands()
				f["bytes"] = r.grown / float64(z.n)
				return f
			})
		},
	}
}

func pairSweep() sweep {
	return sweep{
		name:  "pairs",
		title: "Acquires and releases that share commands",
		about: "Each goroutine acquires and releases a name of its own, over and over, for a second.",
		what:  "goroutines",
		sizes: slices.Concat(sizes(1, 1, 4, 16, 64, 256, 1024), sizes(20, 20, 80, 320, 1280)),
		columns: []column{
			{"rate", "pairs/s", "%.0f"},
			{"commands", "commands per pair", "%.3f"},
			{"cpu", "server CPU per pair, µs", "%.1f"},
		},
		scenario: func(z size) scenario {
			return scenario{
				procs: hands(z.by), places: z.n, length: 1,
				worker: func(ctx context.Context, r *report) worker {
					return &inFleet{&loop{report: r, ctx: ctx, goroutines: z.n / hands(z.by)}, ctx, z.by, ttl}
				},
				figures: turnFigures,
			}
		},
	}
}

// turnFigures are those of a loop, with the CPU time of the server.
func turnFigures(r run) map[string]float64 {
	f := loopFigures(r)
	f["cpu"] = microseconds(r.cpu) / r.acquisitions()
	return f
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
