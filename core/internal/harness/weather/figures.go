//go:build linux

package weather

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Figures are what a run came to.
type Figures struct {
	Service  string         `json:"service"`
	Seed     uint64         `json:"seed"`
	Faults   map[string]int `json:"faults"`
	Outcomes map[string]int `json:"outcomes"` // of calls
	Leases   map[string]int `json:"leases"`   // by name and mode

	CommandsPerGrant float64        `json:"commandsPerGrant,omitempty"`
	Overlaps         int            `json:"overlaps"`          // by nothing
	Explained        map[string]int `json:"overlapsExplained"` // by what explains them
	StaleNaive       int            `json:"staleNaive"`        // late writes that the naive store took
	StaleFenced      int            `json:"staleFenced"`       // and the fenced one
	FencesTwice      int            `json:"fencesTwice"`       // leases with a fence that another one has
	FencesFallen     int            `json:"fencesFallen"`      // with a smaller one than a lease before
	TwoMasters       Spread         `json:"twoMasters"`        // how long a split had them

	LeastMargin time.Duration `json:"leastMargin,omitempty"` // between the end of trust and the server's promise
	Notice      Spread        `json:"notice"`                // from the loss of a name to the end of trust in it
	Probe       Spread        `json:"probe"`                 // to get a name once all is healed
	HandOff     Spread        `json:"handOver"`              // from a release to the next holder, in another process
	TakeOver    Spread        `json:"takeOver"`              // from the SIGKILL of a holder to the next one
	PassedOn    Spread        `json:"passedOn"`              // from a Detach to who comes with its hand-off in time

	Recovery map[string]Spread `json:"recovery"` // from the end of each kind of fault to the next grant that it concerned

	Orphans     int           `json:"orphans"`               // grants that ended by themselves
	LongestLife time.Duration `json:"longestLife,omitempty"` // of one of them, since it was last renewed
	Leaks       int           `json:"leaks"`                 // keys, channels, connections, goroutines, descriptors
	Checking    time.Duration `json:"checking"`
}

// Spread is how durations are distributed.
type Spread struct {
	N             int           `json:"n"`
	P50, P99, Max time.Duration `json:",omitempty"`
}

func spread(all []int64) Spread {
	if len(all) == 0 {
		return Spread{}
	}
	slices.Sort(all)
	at := func(p int) time.Duration { return time.Duration(all[(len(all)-1)*p/100]) }
	return Spread{N: len(all), P50: at(50), P99: at(99), Max: at(100)}
}

// Figures counts what the evidence has.
func (v *Evidence) Figures() Figures {
	f := Figures{Service: v.Service, Outcomes: v.outcomes(), Leases: v.byKind(), Leaks: len(checkLeaks(v))}
	f.StaleNaive, f.StaleFenced = v.StaleWrites()
	f.FencesTwice, f.FencesFallen = v.fenceFaults()
	f.Overlaps, f.Explained = v.overlaps()
	if n := v.degradedOverlaps(); n > 0 {
		f.Explained[string(Degraded)] = n
	}
	f.Probe, f.Notice, f.TwoMasters = spread(v.probes()), spread(v.notices()), spread(v.twoMasters())
	f.HandOff, f.TakeOver, f.PassedOn = spread(v.handOvers()), spread(v.takeOvers()), spread(v.passes())
	f.Recovery = make(map[string]Spread)
	for fault, all := range v.recoveries() {
		f.Recovery[fault] = spread(all)
	}
	if len(v.Servers) > 0 {
		f.LeastMargin = v.LeastMargin()
		f.CommandsPerGrant = float64(v.commands()) / float64(max(1, f.Outcomes["ok"]))
	}
	for _, r := range v.reigns() {
		if r.End == endExpired && r.Worker != "" && !r.Kept {
			f.Orphans++
			f.LongestLife = max(f.LongestLife, time.Duration(r.To-r.Steps[len(r.Steps)-1].at))
		}
	}
	return f
}

// outcomes counts the calls. Those that have asked nobody are apart.
func (v *Evidence) outcomes() map[string]int {
	counts := make(map[string]int)
	for _, c := range v.Calls {
		if c.Answered.Mode == Degraded {
			counts[string(Degraded)]++
			continue
		}
		counts[c.Answered.Class]++
	}
	delete(counts, "") // of those who were killed meanwhile
	return counts
}

// fenceFaults counts the leases that have the fence of another one, and those that have a smaller
// one than a lease that had been granted before they were asked for.
func (v *Evidence) fenceFaults() (twice, fallen int) {
	for _, holds := range v.inTurn() {
		var before []*Hold // by when they were granted, with the largest fence so far
		seen := make(map[uint64]bool)
		for _, h := range holds {
			if h.Fence == 0 || !h.holds() {
				continue
			}
			if seen[h.Fence] {
				twice++
			}
			seen[h.Fence] = true
			n, _ := slices.BinarySearchFunc(before, h.Asked, func(b *Hold, at int64) int { return cmp.Compare(b.Answered, at) })
			if n > 0 && h.Fence < before[n-1].Fence {
				fallen++
			}
			largest := h.Fence
			if len(before) > 0 {
				largest = max(largest, before[len(before)-1].Fence)
			}
			before = append(before, &Hold{Answered: h.Answered, Fence: largest})
		}
	}
	return twice, fallen
}

// overlaps counts the pairs of leases that were trusted together and may not have been.
func (v *Evidence) overlaps() (n int, explained map[string]int) {
	counts := make(map[string]int)
	for _, holds := range v.byName() {
		for i, a := range holds {
			for _, b := range holds[i+1:] {
				if !a.beside(b) {
					counts[v.overlap(a, b)]++
				}
			}
		}
	}
	n = counts[unexplained]
	delete(counts, none)
	delete(counts, unexplained)
	return n, counts
}

// degradedOverlaps counts the pairs of leases, of two processes, that were trusted together
// while one of them had asked nobody.
func (v *Evidence) degradedOverlaps() (n int) {
	for _, holds := range v.byName() {
		for i, a := range holds {
			for _, b := range holds[i+1:] {
				degraded := a.Mode == Degraded || b.Mode == Degraded
				if degraded && a.Worker != b.Worker && b.Answered < a.Last && a.Answered < b.Last {
					n++
				}
			}
		}
	}
	return n
}

// byKind counts the leases of names and modes, all jobs and all solo names as one.
func (v *Evidence) byKind() map[string]int {
	counts := make(map[string]int)
	for _, h := range v.Holds {
		name, _, _ := strings.Cut(h.Name, "-")
		counts[strings.TrimSpace(name+" "+string(h.Mode))]++
	}
	return counts
}
