//go:build linux

package weather

import (
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
		{"store", checkStore},
		{"margin", checkMargin},
		{"owner", func(v *Evidence) []string { return v.Ledger.Breaches }},
		{"early", checkEarly},
		{"orphans", checkOrphans},
		{"silence", checkSilence},
		{"answers", checkAnswers},
		{"bounded", checkBounded},
		{"liveness", checkLiveness},
		{"leaks", checkLeaks},
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
	for _, h := range v.Holds {
		if h.Ghost {
			continue
		}
		add := func(o op, call, ret int64) { all[h.Name] = append(all[h.Name], operation(o, call, ret)) }
		add(op{verb: grantIt, lease: h.ID, fence: h.Fence, by: h.Answered + rounding}, h.Asked, h.Answered)
		for _, e := range h.Beliefs {
			if !v.doomedAt(h, e.At) {
				add(op{verb: believe, lease: h.ID, until: e.Until}, e.Last, e.At)
			}
		}
		switch {
		case h.Releasing == 0, h.Outcome == "lost", v.doomedAt(h, max(h.ReleasedAt, h.Releasing+int64(TTL))):
		case h.Outcome == "ok":
			add(op{verb: freeIt, lease: h.ID}, h.Releasing, h.ReleasedAt)
		default: // afterwards it has expired in any case
			add(op{verb: perhaps, lease: h.ID}, h.Releasing, h.Releasing+2*int64(TTL))
		}
	}
	for _, r := range v.Ledger.Reigns {
		if r.End == endOperator && r.Worker != "" {
			all[r.Name] = append(all[r.Name], operation(op{verb: destroyed}, r.To-clockError, r.To+clockError))
		}
	}
	return all
}

// checkBelief looks for two leases of a name that were trusted at the same time. An overlap
// is explained where an operator had taken the name from the first holder.
func checkBelief(v *Evidence) (breaches []string) {
	for _, holds := range v.byName() {
		for i, a := range holds {
			for _, b := range holds[i+1:] {
				if b.Answered < a.Last && a.Answered < b.Last && !v.doomedAt(a, a.Last) && !v.doomedAt(b, b.Last) {
					breaches = append(breaches, fmt.Sprintf("%s: %s and %s were both trusted for %.1f ms", a.Name, a.ID, b.ID,
						1000*seconds(min(a.Last, b.Last)-max(a.Answered, b.Answered))))
				}
			}
		}
	}
	return breaches
}

func (v *Evidence) byName() map[string][]*Hold {
	names := make(map[string][]*Hold)
	for _, h := range v.Holds {
		names[h.Name] = append(names[h.Name], h)
	}
	return names
}

// checkStore looks at what the fenced store let through: fences that never fall, and each
// of one lease only.
func checkStore(v *Evidence) (breaches []string) {
	largest, owner := make(map[string]uint64), make(map[string]string)
	for _, e := range v.Events {
		if e.Kind != Wrote || !e.Fenced {
			continue
		}
		of := fmt.Sprintf("%s %d", e.Name, e.Fence)
		if e.Fence < largest[e.Name] {
			breaches = append(breaches, fmt.Sprintf("%s: a write with fence %d after one with %d", e.Name, e.Fence, largest[e.Name]))
		}
		if first, ok := owner[of]; ok && first != e.ID {
			breaches = append(breaches, fmt.Sprintf("%s: fence %d belongs to %s and to %s", e.Name, e.Fence, first, e.ID))
		}
		largest[e.Name], owner[of] = max(largest[e.Name], e.Fence), e.ID
	}
	return breaches
}

// StaleWrites is how many writes the naive store took from a holder that was not the latest,
// and how many of them the fenced one took.
func (v *Evidence) StaleWrites() (naive, fenced int) {
	largest := make(map[string]uint64)
	for _, e := range v.Events {
		if e.Kind != Wrote {
			continue
		}
		if e.Fence < largest[e.Name] {
			naive++
			if e.Fenced {
				fenced++
			}
		}
		largest[e.Name] = max(largest[e.Name], e.Fence)
	}
	return naive, fenced
}

// margins says by how much the server would have kept each lease beyond the last instant at
// which it was trusted, had nobody taken it away.
func (v *Evidence) margins(tell func(h *Hold, margin int64, granted bool)) {
	reigns := make(map[[2]string][]*Reign)
	for _, r := range v.Ledger.Reigns {
		key := [2]string{r.Worker, r.Name}
		reigns[key] = append(reigns[key], r)
	}
	for _, h := range v.Holds {
		own := reigns[[2]string{h.Worker, h.Name}]
		points := []int64{h.Last}
		for _, e := range h.Beliefs {
			points = append(points, e.Last)
		}
		for _, at := range points {
			if at == 0 {
				continue
			}
			expiry, granted := paperExpiry(own, at)
			tell(h, expiry-at, granted)
		}
	}
}

// paperExpiry is until when the server had last promised the worker to keep the name.
func paperExpiry(own []*Reign, at int64) (expiry int64, granted bool) {
	for _, r := range own {
		freed := (r.End == endFreed || r.End == endBreach) && r.To <= at
		for _, s := range r.Steps {
			if s.at > at {
				break
			}
			granted = true
			until := s.expiry
			if freed {
				until = r.To
			}
			expiry = max(expiry, until)
		}
	}
	return expiry, granted
}

func checkMargin(v *Evidence) (breaches []string) {
	v.margins(func(h *Hold, margin int64, granted bool) {
		switch {
		case !granted:
			breaches = append(breaches, fmt.Sprintf("%s: %s was trusted without a grant", h.Name, h.ID))
		case margin < 0:
			breaches = append(breaches, fmt.Sprintf("%s: %s was trusted %.1f ms after the server's promise", h.Name, h.ID, -1000*seconds(margin)))
		}
	})
	return breaches
}

// LeastMargin is the smallest of the margins.
func (v *Evidence) LeastMargin() time.Duration {
	least := int64(TTL)
	v.margins(func(_ *Hold, margin int64, granted bool) {
		if granted {
			least = min(least, margin)
		}
	})
	return time.Duration(least)
}

// checkEarly looks for names that were freed while their holder had not given them back.
func checkEarly(v *Evidence) (breaches []string) {
	for _, h := range v.Holds {
		if h.Reign == nil || h.Reign.End != endFreed || h.Reign.EndedBy != h.Worker || h.Releasing == 0 {
			continue
		}
		if before := h.Releasing - h.Reign.To; before > clockError {
			breaches = append(breaches, fmt.Sprintf("%s: %s was freed %.1f ms before its release began", h.Name, h.ID, 1000*seconds(before)))
		}
	}
	return breaches
}

// hard are the faults that may keep a clean-up from its work.
func hard(e Event) bool { return e.Fault != "delay" }

// checkOrphans looks for grants that were left to their TTL although nothing was in the way
// of giving them back.
func checkOrphans(v *Evidence) (breaches []string) {
	for _, r := range v.Ledger.Reigns {
		if r.End == endExpired && r.Worker != "" && !v.trouble(r.Worker, r.From-int64(TTL), r.To, hard) {
			breaches = append(breaches, fmt.Sprintf("%s: a grant to %s was left to its TTL", r.Name, r.Worker))
		}
	}
	return breaches
}

// checkSilence looks for commands with tokens that had been given back long before.
func checkSilence(v *Evidence) (breaches []string) {
	const late = int64(TTL) * 2 // longer than a fault holds a request up, and than a release takes
	freed := make(map[string]*Reign)
	for _, r := range v.Ledger.Reigns {
		if r.End == endFreed || r.End == endBreach {
			freed[r.Token] = r
		}
	}
	for _, c := range v.Server {
		if !strings.HasPrefix(c.Args[0], "eval") {
			continue
		}
		for _, arg := range c.Args[min(3, len(c.Args)):] {
			r := freed[tokenOf(arg)]
			if r != nil && c.At > r.To+late && !v.trouble(r.Worker, r.To, c.At, hard) {
				breaches = append(breaches, fmt.Sprintf("%s: %s sends a token %.1f s after its end", r.Name, c.Client, seconds(c.At-r.To)))
			}
		}
	}
	return breaches
}

// checkAnswers looks at the workers' own names: "held" is the answer only if somebody else,
// or an earlier call, had the name or stood in line for it.
func checkAnswers(v *Evidence) (breaches []string) {
	for _, c := range v.Calls {
		a := c.Answered
		switch {
		case a.Class == "other":
			breaches = append(breaches, fmt.Sprintf("%s: %s", a.ID, a.Error))
		case a.Class == "held" && strings.HasPrefix(a.Name, "solo-") && !v.contended(a.Name, c.Asked.At, a.At):
			breaches = append(breaches, fmt.Sprintf("%s: %s was told that its own grant is somebody else's", a.Name, a.ID))
		}
	}
	return breaches
}

func (v *Evidence) contended(name string, from, to int64) bool {
	for _, r := range v.Ledger.Reigns {
		end := r.To
		if r.End != endFreed { // when it expired is computed
			end += rounding
		}
		if r.Name == name && r.From < to && end > from && (r.From < from || r.Worker == "") {
			return true
		}
	}
	crowd := Crowd{}
	for _, c := range v.Ledger.Lines[name] {
		if c.At >= to {
			break
		}
		if c.At < from {
			crowd = c
			continue
		}
		if c.N > 0 {
			return true
		}
	}
	return crowd.N > 0
}

// checkBounded looks for calls that came back later than their ctx or their own bound.
func checkBounded(v *Evidence) (breaches []string) {
	const slack = int64(350 * time.Millisecond) // 50 ms are promised; the rest is a busy machine's
	frozen := func(e Event) bool { return e.Fault == "stop" || e.Fault == "kill" || e.Fault == "starve" }
	attempt := int64(TTL / 3)
	for _, c := range v.Calls {
		bound := c.Asked.Deadline
		if c.Asked.Try {
			bound = min(bound, c.Asked.At+attempt)
		}
		breaches = append(breaches, v.overdue(c.Asked, c.Answered.At, bound+slack, frozen)...)
	}
	released := make(map[string]int64)
	for _, h := range v.Holds {
		released[h.ID] = h.ReleasedAt
	}
	for _, e := range v.Events {
		if e.Kind == Releasing {
			breaches = append(breaches, v.overdue(e, released[e.ID], min(max(e.Deadline, e.At), e.At+attempt)+slack, frozen)...)
		}
	}
	return breaches
}

func (v *Evidence) overdue(e Event, end, bound int64, frozen func(Event) bool) []string {
	switch {
	case end == 0 && !v.trouble(e.Worker, e.At, bound, frozen):
		return []string{fmt.Sprintf("%s: %s %s has no end", e.Name, e.Kind, e.ID)}
	case end > bound && !v.trouble(e.Worker, e.At, end, frozen):
		return []string{fmt.Sprintf("%s: %s %s came back %.0f ms late", e.Name, e.Kind, e.ID, 1000*seconds(end-bound))}
	}
	return nil
}

// checkLiveness looks at what it took to get every name once the weather was over.
func checkLiveness(v *Evidence) (breaches []string) {
	const bound = TTL + TTL/3 + 1500*time.Millisecond // TTL, re-check, and others who probe
	probes := 0
	for _, e := range v.Events {
		if e.Kind != Probed {
			continue
		}
		probes++
		if e.Class != "ok" || time.Duration(e.Count) > bound {
			breaches = append(breaches, fmt.Sprintf("%s: %s took %v: %s", e.Name, e.Worker, time.Duration(e.Count), e.Class))
		}
	}
	if probes == 0 {
		breaches = append(breaches, "nobody has probed")
	}
	return breaches
}

// checkLeaks looks at what was left when all was quiet.
func checkLeaks(v *Evidence) (breaches []string) {
	breaches = append(breaches, v.Idle...)
	counted := 0
	for _, e := range v.Events {
		switch e.Kind {
		case Left:
			counted++
			if e.Count > e.Base {
				breaches = append(breaches, fmt.Sprintf("%s: %d %s, %d at its start\n%s", e.Worker, e.Count, e.Name, e.Base, e.Error))
			}
		case Closed:
			if e.Class != "ok" {
				breaches = append(breaches, fmt.Sprintf("%s: Close: %s", e.Worker, e.Error))
			}
		default:
		}
	}
	if counted == 0 {
		breaches = append(breaches, "nobody has counted")
	}
	return breaches
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
