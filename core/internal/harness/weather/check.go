//go:build linux

package weather

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Checker looks at the evidence for one kind of breach. What it returns is empty, or says
// what went wrong, one line each.
type Checker struct {
	Name  string
	Check func(*Evidence) []string
}

// Checkers are all of them.
func Checkers() []Checker {
	return []Checker{
		{"evidence", func(v *Evidence) []string {
			if v.Failed != nil {
				return []string{v.Failed.Error()}
			}
			return nil
		}},
		{"linearizable", checkLinearizable},
		{"belief", checkBelief},
		{"sharing", checkSharing},
		{"kept", checkKept},
		{"done", checkDone},
		{"store", checkStore},
		{"margin", checkMargin},
		{"announced", checkAnnounced},
		{"owner", func(v *Evidence) (breaches []string) {
			for _, l := range v.Servers {
				breaches = append(breaches, l.Breaches...)
			}
			return breaches
		}},
		{"early", checkEarly},
		{"orphans", checkOrphans},
		{"silence", checkSilence},
		{"seized", checkSeized},
		{"fair", checkFair},
		{"polls", checkPolls},
		{"answers", checkAnswers},
		{"bounded", checkBounded},
		{"liveness", checkLiveness},
		{"leaks", checkLeaks},
		{"secrets", checkSecrets},
	}
}

// checkLinearizable has porcupine look for an order in which every name had one holder at a
// time, with a larger fence each.
func checkLinearizable(v *Evidence) (breaches []string) {
	for name, ops := range v.operations() {
		verdict, explained := linearizable(ops)
		if verdict != porcupine.Ok {
			breaches = append(breaches, fmt.Sprintf("%s: %s; %d of %d operations have an order", name, verdict, explained, len(ops)))
		}
	}
	return breaches
}

const clockError = int64(2 * time.Millisecond) // between the server's clock and ours

// operations are those of the model. What an operator has taken from its holder is no
// breach of ours for as long as the holder cannot know: see checkMargin for that.
func (v *Evidence) operations() map[string][]porcupine.Operation {
	all := make(map[string][]porcupine.Operation)
	called := v.called()
	for _, h := range v.Holds {
		if !h.Ghost && !together(h.Name) && h.holds() && !v.strandedAt(h, h.Answered) {
			all[h.Name] = append(all[h.Name], v.history(h, called[h])...)
		}
	}
	for name, ops := range all {
		if name == passedName || isLocal(name) {
			all[name] = append(ops, v.lostHandoffs(name)...)
		}
	}
	for _, r := range v.reigns() {
		if ops, ok := all[r.Name]; ok && r.End == endOperator && r.Worker != "" {
			all[r.Name] = append(ops, operation(op{verb: destroyed}, r.To-clockError, r.To+clockError))
		}
	}
	for name := range all {
		for _, l := range v.losses(name) {
			all[name] = append(all[name], operation(op{verb: destroyed}, l.from, l.to))
		}
	}
	return all
}

// called is when each lease can have been granted at the earliest: where its process has had the name
// before, not while that lease was trusted. Of a herd there would be too many orders to try else; that
// a process has a name once at a time is for checkBelief to see.
func (v *Evidence) called() map[*Hold]int64 {
	at := make(map[*Hold]int64)
	latest := make(map[[2]string]int64) // by process and name
	holds := slices.Clone(v.Holds)
	slices.SortFunc(holds, func(a, b *Hold) int { return cmp.Compare(a.Answered, b.Answered) })
	for _, h := range holds {
		key := [2]string{h.Worker, h.Name}
		if at[h] = h.Asked; latest[key] < h.Answered {
			at[h] = max(h.Asked, latest[key])
		}
		if h.Mode != Degraded {
			latest[key] = max(latest[key], h.Last)
		}
	}
	return at
}

// history is what happened to one lease.
func (v *Evidence) history(h *Hold, called int64) (ops []porcupine.Operation) {
	add := func(o op, call, ret int64) { ops = append(ops, operation(o, call, ret)) }
	add(op{verb: grantIt, lease: h.ID, fence: h.Fence, handoff: h.Handoff, by: h.Answered + rounding}, called, h.Answered)
	for _, e := range h.beliefs() {
		if !v.doomedAt(h, e.At) && !v.strandedAt(h, e.At) {
			add(op{verb: believe, lease: h.ID, until: e.Until}, e.Last, e.At)
		}
	}
	switch end := h.lastReleased(); {
	case end.Releasing == 0, end.Outcome == "lost" && !h.isPart():
	case end.Outcome == "ok" && !v.doomedAt(h, end.ReleasedAt) && !v.strandedAt(h, end.ReleasedAt):
		add(op{verb: freeIt, lease: h.ID, until: h.leftUntil()}, end.Releasing, end.ReleasedAt)
	default: // afterwards it has expired in any case
		add(op{verb: perhaps, lease: h.ID}, end.Releasing, end.Releasing+2*int64(life(h.Name)))
	}
	return ops
}

// isPart says whether h was of several names, which have one outcome: if that is a loss, others than
// the one that was lost were freed.
func (h *Hold) isPart() bool { return strings.HasSuffix(h.ID, "/"+h.Name) }

const dying = int64(100 * time.Millisecond) // from the end of a server to the moment that is noted for it

// checkBelief looks for two leases of a name that were trusted at the same time, with nothing
// that explains it.
func checkBelief(v *Evidence) (breaches []string) {
	breaches = v.outlived()
	for name, holds := range v.byName() {
		if together(name) {
			continue // see checkSharing
		}
		for i, a := range holds {
			for _, b := range holds[i+1:] {
				if !a.beside(b) && v.overlap(a, b) == unexplained {
					breaches = append(breaches, fmt.Sprintf("%s: %s and %s were both trusted for %.1f ms", a.Name, a.ID, b.ID,
						1000*seconds(min(a.Last, b.Last)-max(a.Answered, b.Answered))))
				}
			}
		}
	}
	return breaches
}

// What explains that two leases were trusted at one time.
const (
	none        = "none" // they were not
	unexplained = "unexplained"
	bySplit     = "split"    // there were two masters
	byFailover  = "failover" // who was promoted did not know
	byOperator  = "operator" // who took the name from the first holder, or restarted the server
)

// overlap says whether two leases were trusted at a time, and by whose fault.
func (v *Evidence) overlap(a, b *Hold) string {
	switch {
	case b.Answered >= a.Last || a.Answered >= b.Last:
		return none
	case a.inLine(b):
		return unexplained
	case v.torn(a, b):
		return bySplit
	case !v.doomedAt(a, a.Last) && !v.doomedAt(b, b.Last):
		return unexplained
	case v.forgetful():
		return byFailover
	default:
		return byOperator
	}
}

// inLine says whether two leases were of one process, where one would have had to wait for the other's end
// whatever becomes of the name elsewhere. Only by a hand-off the lock service is asked beside the line,
// and only of a degraded lease nothing can be forgotten there.
func (h *Hold) inLine(o *Hold) bool {
	degraded := h.Mode == Degraded || o.Mode == Degraded
	return h.Worker == o.Worker && !together(h.Name) && (degraded || h.Handoff == "" && o.Handoff == "")
}

func (v *Evidence) byName() map[string][]*Hold {
	names := make(map[string][]*Hold)
	for _, h := range v.Holds {
		names[h.Name] = append(names[h.Name], h)
	}
	return names
}

// Findings are the breaches of every checker that found some.
func (v *Evidence) Findings() map[string][]string {
	found := make(map[string][]string)
	for _, c := range Checkers() {
		if breaches := c.Check(v); len(breaches) > 0 {
			found[c.Name] = breaches
		}
	}
	return found
}

// Red are the names of the checkers that found something, in order.
func Red(found map[string][]string) []string { return slices.Sorted(maps.Keys(found)) }
