package main

import (
	"context"
	"math"
	"slices"
	"time"
)

// calm is the TTL of leases that are held in a sweep. Costs for each second are those of the default of 10 s,
// times two thirds: a lease is renewed three times in a TTL.
const calm = 15 * time.Second

// sweeps are all there are, in the order in which they run.
func sweeps() []sweep {
	return []sweep{heldSweep(), slotSweep(), herdSweep(), turnSweep(), namesSweep(), memberSweep(), renewalSweep(), pairSweep(), deadSweep()}
}

// These columns are those of most sweeps.
var (
	serverLoad = growing{column{"load", "server CPU, ms/s", "%.3g"}, 1.1}
	commands   = growing{column{"commands", "commands/s", "%.4g"}, 1.1}
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
		worker: func(ctx context.Context) (worker, *report) {
			w := &standing{
				report: &report{Figures: map[string]float64{}}, still: s, ctx: ctx, procs: hands(members),
			}
			return &inFleet{w, ctx, members, calm, s.slots}, w.report
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
		what: "leases", by: "processes",
		sizes: slices.Concat(
			sizes(1, 100, 1000, 10_000, 100_000), large(sizes(1, 1_000_000)),
			sizes(50, 100, 1000, 10_000, 100_000), large(sizes(50, 1_000_000))),
		columns: []growing{
			serverLoad, commands,
			{column{"each", "server CPU of a renewal, µs", "%.2f"}, 0.1},
			{column{"shared", "renewals in a command", "%.1f"}, math.Inf(1)},
			{column{"bytes", "server memory of a lease, bytes", "%.0f"}, math.Inf(1)}, // some KB go to something else
			{column{"lost", "lost", "%.0f"}, math.Inf(1)},
		},
		scenario: func(z size) scenario {
			return stand(z.by, calm/3, still{leases: z.n}, func(r run) map[string]float64 {
				f := rates(r)
				f["each"] = microseconds(r.cpu) / f["renewals"]
				f["shared"] = f["renewals"] / r.commands()
				f["bytes"] = r.grown.data / float64(z.n)
				return f
			})
		},
	}
}

// slotSweep is what one master of a Cluster has to do: there, and with WithSlots, no two names are renewed
// by one script.
func slotSweep() sweep {
	s := heldSweep()
	s.name, s.title = "held-slots", "Held leases by slots, as at a master of a Cluster"
	s.about = "The same with `WithSlots`, so that each renewal is a command of its own, as in a Cluster."
	s.sizes = slices.Concat(sizes(1, 100, 1000, 10_000, 100_000), sizes(50, 100, 1000, 10_000))
	plain := s.scenario
	s.scenario = func(z size) scenario {
		return stand(z.by, calm/3, still{leases: z.n, slots: true}, plain(z).figures)
	}
	return s
}

func herdSweep() sweep {
	return sweep{
		name:  "waiters",
		title: "Waiters on one name",
		about: "Goroutines that wait for a name, which another process holds; in 3 s.",
		what:  "waiters", by: "processes",
		sizes: slices.Concat(sizes(1, 10, 100, 1000, 10_000, 100_000), sizes(20, 100, 3000, 100_000), sizes(200, 1000, 10_000, 100_000)),
		columns: []growing{
			{serverLoad.column, 0.1},
			{commands.column, 0.1},
			{column{"each", "commands/s of a process", "%.2f"}, 0.1},
		},
		scenario: func(z size) scenario {
			return stand(z.by+1, 3*time.Second, still{leases: 1, waiters: z.n}, func(r run) map[string]float64 {
				f := rates(r)
				f["each"] = f["commands"] / float64(z.by)
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
		what:  "waiters", by: "processes",
		sizes: slices.Concat(sizes(1, 10, 100, 1000, 10_000), sizes(20, 20, 80, 320, 1280), sizes(200, 200, 600, 1800)),
		columns: []growing{
			{column{"rate", "acquisitions/s", "%.0f"}, math.Inf(1)},
			{column{"commands", "commands per acquisition", "%.4f"}, 0.1},
			{column{"cpu", "server CPU per acquisition, µs", "%.2f"}, 0.1},
		},
		scenario: func(z size) scenario {
			return scenario{
				procs: hands(z.by), places: 1, length: 1,
				worker: func(ctx context.Context) (worker, *report) {
					l := &loop{report: &report{}, ctx: ctx, goroutines: z.n / hands(z.by), oneName: true}
					return &inFleet{l, ctx, z.by, ttl, false}, l.report
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
		what:  "names", by: "processes",
		sizes: slices.Concat(sizes(2, 10, 100, 1000, 3000), large(sizes(2, 10_000)), sizes(20, 20, 200, 2000, 4000), large(sizes(20, 10_000))),
		columns: []growing{
			serverLoad, commands,
			{column{"each", "server CPU of a command, µs", "%.1f"}, 0.1},
			{column{"bytes", "server memory of a name, bytes", "%.0f"}, math.Inf(1)}, // as above
		},
		scenario: func(z size) scenario {
			return stand(z.by, 3*time.Second, still{leases: z.n, each: 1}, func(r run) map[string]float64 {
				f := rates(r)
				f["each"] = microseconds(r.cpu) / r.commands()
				f["bytes"] = r.grown.data / float64(z.n)
				return f
			})
		},
	}
}

func memberSweep() sweep {
	return sweep{
		name:  "processes",
		title: "Processes",
		about: "Each process holds 20 names, and one goroutine of it waits for a name that all want; TTL 15 s, in 5 s. Memory is that of the server's connections.",
		what:  "processes",
		sizes: sizes(0, 5, 10, 30, 100, 200), // the holder's own waiter sends nothing
		columns: []growing{
			serverLoad, commands,
			{column{"connections", "connections", "%.0f"}, 1.1},
			{column{"bytes", "server memory of a connection, bytes", "%.0f"}, math.Inf(1)}, // buffers shrink while it idles
		},
		scenario: func(z size) scenario {
			return stand(z.n, 5*time.Second, still{leases: 20 * z.n, waiters: z.n}, func(r run) map[string]float64 {
				f := rates(r)
				f["connections"] = r.grown.connections
				f["bytes"] = r.grown.clients / r.grown.connections
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
		what:  "goroutines", by: "processes",
		sizes: slices.Concat(sizes(1, 1, 4, 16, 64, 256, 1024), sizes(20, 20, 80, 320, 1280)),
		columns: []growing{
			{column{"rate", "pairs/s", "%.0f"}, math.Inf(1)},
			{column{"commands", "commands per pair", "%.3f"}, 0.1},
			{column{"cpu", "server CPU per pair, µs", "%.1f"}, 0.1},
		},
		scenario: func(z size) scenario {
			return scenario{
				procs: hands(z.by), places: z.n, length: 1,
				worker: func(ctx context.Context) (worker, *report) {
					l := &loop{report: &report{}, ctx: ctx, goroutines: z.n / hands(z.by)}
					return &inFleet{l, ctx, z.by, ttl, false}, l.report
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
