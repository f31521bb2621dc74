//go:build linux

package weather

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// checkAnswers looks at the workers' own names: "held" is the answer only if somebody else,
// or an earlier call, had the name or stood in line for it.
func checkAnswers(v *Evidence) (breaches []string) {
	for _, c := range v.Calls {
		a := c.Answered
		switch {
		case strings.Contains(a.Error, `\x1f`): // the magic byte, as %q prints it
			breaches = append(breaches, fmt.Sprintf("%s: %s was told what stands behind a label: %s", a.Name, a.ID, a.Error))
		case a.Class == "other":
			breaches = append(breaches, fmt.Sprintf("%s: %s", a.ID, a.Error))
		case a.Mode == Inner && a.Class != "ok" && a.Class != "ended":
			breaches = append(breaches, fmt.Sprintf("%s: %s was refused the name that it has: %s", a.Name, a.ID, a.Class))
		case a.Class == "held" && len(v.Servers) > 0 && strings.HasPrefix(a.Name, "solo-") &&
			!v.contended(a.Name, a.Worker, c.Asked.At, a.At) && !v.leaving(a.Name, a.Worker, c.Asked.At):
			breaches = append(breaches, fmt.Sprintf("%s: %s was told that its own grant is somebody else's", a.Name, a.ID))
		}
	}
	return append(breaches, v.fences()...)
}

// contended says whether another one than the asker's call had a name, or stood in line for it.
// leaving says whether a process did not know yet, when it asked, that an earlier lease of its own had left the name: the lease was not
// told of its loss, or its release had no answer. That may last for as long as a release may take.
func (v *Evidence) leaving(name, worker string, asked int64) bool {
	return slices.ContainsFunc(v.Holds, func(h *Hold) bool {
		if h.Name != name || h.Worker != worker || h.Answered >= asked {
			return false
		}
		return h.ReleasedAt == 0 || h.ReleasedAt >= asked || h.Outcome != "ok" && h.ReleasedAt+late(&Reign{Name: name}) > asked
	})
}

func (v *Evidence) contended(name, asker string, from, to int64) bool {
	return slices.ContainsFunc(v.Servers, func(l *Ledger) bool { return l.contended(name, asker, from, to) })
}

func (l *Ledger) contended(name, asker string, from, to int64) bool {
	for _, r := range l.Reigns {
		end := r.To
		if r.End != endFreed { // when it expired is computed
			end += rounding
		}
		if r.Name != name || r.From >= to || end <= from {
			continue
		}
		if r.From < from || r.Worker != asker || l.refused(r, max(from, r.From), min(to, end)) {
			return true
		}
	}
	crowd := Crowd{}
	for _, c := range l.Lines[name] {
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

// refused says whether another token of the same worker found a reign in its way: an earlier
// call's, whose command was late.
func (l *Ledger) refused(r *Reign, from, to int64) bool {
	for _, c := range l.Commands {
		if c.At < from || c.At > to || c.Client != r.Worker || !slices.Contains(c.Args, Prefix+r.Name) {
			continue
		}
		if c.Args[0] == "watch" { // its token is not told
			return true
		}
		if !strings.HasPrefix(c.Args[0], "eval") {
			continue
		}
		other := func(arg string) bool { return tokenOf(arg) != "" && tokenOf(arg) != r.Token }
		if slices.ContainsFunc(c.Args[3:], other) {
			return true
		}
	}
	return false
}

// checkBounded looks for calls that came back later than their ctx or their own bound.
func checkBounded(v *Evidence) (breaches []string) {
	const slack = int64(350 * time.Millisecond) // 50 ms are promised; the rest is a busy machine's
	frozen := func(e Event) bool { return e.Fault == "stop" || e.Fault == "kill" || e.Fault == "starve" }
	attempt := func(name string) int64 { return int64(min(life(name)/3, 2*time.Second)) }
	for _, c := range v.Calls {
		bound := c.Asked.Deadline
		if c.Asked.Try {
			bound = min(bound, c.Asked.At+attempt(c.Asked.Name))
		}
		breaches = append(breaches, v.overdue(c.Asked, c.Answered.At, bound+slack, frozen)...)
	}
	released := make(map[string]int64)
	for _, h := range v.Holds {
		released[h.ID] = h.ReleasedAt
	}
	for _, e := range v.Events {
		if e.Kind == Releasing {
			breaches = append(breaches, v.overdue(e, released[e.ID], min(max(e.Deadline, e.At), e.At+attempt(e.Name))+slack, frozen)...)
		}
	}
	return breaches
}

func (v *Evidence) overdue(e Event, end, bound int64, frozen func(Event) bool) []string {
	switch {
	case end == 0 && !v.trouble(e.Worker, e.At, bound, frozen):
		return []string{fmt.Sprintf("%s: %s %s has no end", e.Name, e.Kind, e.ID)}
	case end > bound+v.stalled(e.Worker, e.At, end) && !v.trouble(e.Worker, e.At, end, frozen):
		return []string{fmt.Sprintf("%s: %s %s came back %.0f ms late", e.Name, e.Kind, e.ID, 1000*seconds(end-bound))}
	}
	return nil
}

// checkLiveness looks at what it took to get every name once the weather was over.
func checkLiveness(v *Evidence) (breaches []string) {
	const others = 1500 * time.Millisecond // who probe
	probes := 0
	for _, e := range v.Events {
		if e.Kind != Probed {
			continue
		}
		probes++
		ttl := life(e.Name)
		if bound := ttl + ttl/3 + others; e.Class != "ok" || time.Duration(e.Count) > bound { // TTL, re-check
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
