//go:build linux

package chaos

import (
	"cmp"
	"strings"
)

// Result is what a run came to.
type Result struct {
	Service    string         `json:"service"`
	Seed       uint64         `json:"seed"`
	For        string         `json:"for"`
	Faults     int            `json:"faults"`
	Calls      map[string]int `json:"calls"`      // by what came of them
	Leases     map[string]int `json:"leases"`     // by name, all jobs and all solo names as one
	Explained  int            `json:"explained"`  // overlaps, by an operator
	Overlaps   int            `json:"overlaps"`   // by nothing
	StaleNaive int            `json:"staleNaive"` // late writes that the naive store took
	Stale      int            `json:"stale"`      // and the fenced one
	Red        []string       `json:"red"`
}

// Result counts what the evidence has.
func (v *Evidence) Result() Result {
	f := Result{Service: v.Service, Calls: make(map[string]int), Leases: make(map[string]int)}
	f.StaleNaive, f.Stale = v.StaleWrites()
	for _, c := range v.Calls {
		f.Calls[cmp.Or(c.Answered.Class, "killed")]++
	}
	for name, holds := range v.byName() {
		name, _, _ := strings.Cut(name, "-")
		f.Leases[name] += len(holds)
		v.overlaps(holds, func(_, _ *Hold, explained bool) {
			if explained {
				f.Explained++
			} else {
				f.Overlaps++
			}
		})
	}
	return f
}
