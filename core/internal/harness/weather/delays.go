//go:build linux

package weather

import (
	"cmp"
	"slices"
	"strings"
)

// probes is how long it took to get a name once all was healed.
func (v *Evidence) probes() (all []int64) {
	for _, e := range v.Events {
		if e.Kind == Probed {
			all = append(all, int64(e.Count))
		}
	}
	return all
}

// notices is how long leases were trusted after an operator had taken their names.
func (v *Evidence) notices() (all []int64) {
	for _, h := range v.Holds {
		if r := h.Reign; r != nil && r.End == endOperator && h.Last > r.To {
			all = append(all, h.Last-r.To)
		}
	}
	return all
}

// twoMasters is for how long there were two.
func (v *Evidence) twoMasters() (all []int64) {
	for _, s := range v.Splits {
		all = append(all, s.Demoted-s.Promoted)
	}
	return all
}

// handOvers is how long it took from a release to the return of the acquire, of another process, that
// had waited for it.
func (v *Evidence) handOvers() (all []int64) {
	for _, holds := range v.inTurn() {
		for i, b := range holds[1:] {
			a := holds[i]
			if a.Outcome == "ok" && a.Worker != b.Worker && b.Asked < a.Releasing && b.Answered > a.Releasing {
				all = append(all, b.Answered-a.Releasing)
			}
		}
	}
	return all
}

// takeOvers is how long it took from the SIGKILL of a holder until somebody had the name.
func (v *Evidence) takeOvers() (all []int64) {
	names := v.inTurn()
	for _, e := range v.Events {
		if e.Kind != Faulted || e.Fault != "kill" {
			continue
		}
		for _, holds := range names {
			for i, b := range holds[1:] {
				a := holds[i]
				if isOf(a.Worker, e.Worker) && a.Releasing == 0 && a.Answered < e.At && e.At < b.Answered && e.At-a.Last < int64(TTL) {
					all = append(all, b.Answered-e.At)
				}
			}
		}
	}
	return all
}

// recoveries is how long it took, after each kind of fault, until a call was granted that it
// concerned: one of the worker, or of anybody.
func (v *Evidence) recoveries() map[string][]int64 {
	granted := slices.Clone(v.Holds)
	slices.SortFunc(granted, func(a, b *Hold) int { return cmp.Compare(a.Answered, b.Answered) })
	all := make(map[string][]int64)
	for _, e := range v.Events {
		if e.Kind != Healed || e.Fault == "" {
			continue
		}
		from, _ := slices.BinarySearchFunc(granted, e.At, func(h *Hold, at int64) int { return cmp.Compare(h.Answered, at) })
		for _, h := range granted[from:] {
			if e.Worker == "" || isOf(h.Worker, e.Worker) {
				all[e.Fault] = append(all[e.Fault], h.Answered-e.At)
				break
			}
		}
	}
	return all
}

// inTurn is who had each name that only one may have, one after the other.
func (v *Evidence) inTurn() map[string][]*Hold {
	names := v.byName()
	for name, holds := range names {
		if together(name) || slices.Contains(otherNames, name) || isLocal(name) {
			delete(names, name)
			continue
		}
		slices.SortFunc(holds, func(a, b *Hold) int { return cmp.Compare(a.Answered, b.Answered) })
	}
	return names
}

// isOf says whether a process is one of a worker's: there is another one after each kill.
func isOf(life, worker string) bool {
	rest, ok := strings.CutPrefix(life, worker)
	return ok && (rest == "" || rest[0] < '0' || rest[0] > '9')
}
