//go:build linux

package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Checker looks at the evidence for one kind of breach. What it returns is empty, or says what went wrong, one line each.
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
		{"order", checkOrder},
		{"trust", checkTrust},
		{"sharing", checkSharing},
		{"kept", checkKept},
		{"done", checkDone},
		{"store", checkStore},
		{"owner", checkOwner},
		{"left", checkLeft},
		{"served", checkServed},
	}
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

// overlaps tells of each two leases of a name that were trusted at a time, and may not have been. It is explained if an operator took
// the name from one of them, or restarted the server.
func (v *Evidence) overlaps(holds []*Hold, tell func(a, b *Hold, explained bool)) {
	for i, a := range holds {
		for _, b := range holds[i+1:] {
			if b.Answered >= a.Last {
				break
			}
			if a.Answered >= b.Last || a.Mode != Alone && a.Mode == b.Mode {
				continue
			}
			// In one process, one has to wait for the other's end whatever becomes of the name elsewhere. Only by a hand-off the service is
			// asked beside the process's own queue.
			inQueue := a.Worker == b.Worker && !together(a.Name) && a.Handoff == "" && b.Handoff == ""
			tell(a, b, !inQueue && (v.doomedAt(a, a.Last) || v.doomedAt(b, b.Last)))
		}
	}
}

func (v *Evidence) overlapping(holds []*Hold) (breaches []string) {
	v.overlaps(holds, func(a, b *Hold, explained bool) {
		if !explained {
			breaches = append(breaches, fmt.Sprintf("%s: %s (%s) and %s (%s) were both trusted for %.1f ms", a.Name, a.ID, a.Mode, b.ID, b.Mode,
				1000*seconds(min(a.Last, b.Last)-max(a.Answered, b.Answered))))
		}
	})
	return breaches
}

// checkTrust looks for two leases of a name that were trusted at one time, with nothing that explains it; and for leases that
// were trusted for longer than the servers had promised, had nobody taken them away.
func checkTrust(v *Evidence) (breaches []string) {
	for name, holds := range v.byName() {
		if !together(name) {
			breaches = append(breaches, v.overlapping(holds)...)
		}
	}
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

// margins says by how much the servers would have kept each lease beyond the last instant at which it was trusted, had nobody
// taken it away: as many of them as decide.
func (v *Evidence) margins(tell func(h *Hold, margin int64, granted bool)) {
	grants := make([]map[[2]string][]*Grant, len(v.Servers))
	for i, l := range v.Servers {
		grants[i] = make(map[[2]string][]*Grant)
		for _, g := range slices.Concat(l.Grants, l.Shares) {
			if !g.Kept {
				key := [2]string{g.Worker, g.Name}
				grants[i][key] = append(grants[i][key], g)
			}
		}
	}
	for _, h := range v.Holds {
		for _, trusted := range append([]Event{h.Event}, h.Beliefs...) {
			at := trusted.Last
			if len(v.Servers) == 0 || at == 0 {
				continue
			}
			var promised []int64
			for _, own := range grants {
				if expiry, granted := paperExpiry(own[[2]string{h.Worker, h.Name}], at); granted {
					promised = append(promised, expiry)
				}
			}
			slices.Sort(promised)
			if spare := len(promised) - len(v.Servers)/2 - 1; spare >= 0 {
				tell(h, promised[spare]-at, true)
			} else {
				tell(h, 0, false)
			}
		}
	}
}

// paperExpiry is until when a server had last promised the worker to keep the name.
func paperExpiry(own []*Grant, at int64) (expiry int64, granted bool) {
	for _, g := range own {
		freed := (g.End == endFreed || g.End == endBreach) && g.To+clockError <= at
		for _, s := range g.Steps {
			if s.at > at {
				break
			}
			granted = true
			until := s.expiry
			if freed {
				until = g.To
			}
			expiry = max(expiry, until)
		}
	}
	return expiry, granted
}

// checkSharing looks at the names that several may hold: no writer beside anybody, no more than there are places, and fences
// that tell a reader which writer's work it sees.
func checkSharing(v *Evidence) (breaches []string) {
	for name, holds := range v.byName() {
		if !together(name) {
			continue
		}
		breaches = append(breaches, v.overlapping(holds)...)
		for i, a := range holds {
			for _, b := range holds[i+1:] {
				breaches = append(breaches, fencesOf(a, b)...)
			}
		}
		if n, at := v.most(holds); n > places {
			breaches = append(breaches, fmt.Sprintf("%s: %d of %d places were taken at %.3f s", name, n, places, seconds(at)))
		}
	}
	return breaches
}

// fencesOf compares two leases of which the first was over when the other was asked for.
func fencesOf(a, b *Hold) []string {
	if a.Mode == Limited || b.Mode == Limited || a.ReleasedAt == 0 || a.ReleasedAt > b.Asked {
		return nil
	}
	readers := a.Mode == Reader && b.Mode == Reader // who come one after the other, or beside others
	if a.Fence < b.Fence || readers && a.Fence == b.Fence {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s (%s) has fence %d, and %s (%s) before it %d", a.Name, b.ID, b.Mode, b.Fence, a.ID, a.Mode, a.Fence)}
}

// most is how many leases of one of the places were trusted at a time.
func (v *Evidence) most(holds []*Hold) (most int, when int64) {
	type edge struct {
		at   int64
		more int
	}
	var edges []edge
	for _, h := range holds {
		if h.Mode == Limited && h.Answered < h.Last && !v.doomedAt(h, h.Last) {
			edges = append(edges, edge{h.Answered, 1}, edge{h.Last, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.more, b.more)) })
	n := 0
	for _, e := range edges {
		if n += e.more; n > most {
			most, when = n, e.at
		}
	}
	return most, when
}

// checkKept looks for names that somebody got before the time that WithMinHold had kept them for: since the grant, which was not
// renewed when its worker first asked until when it stands.
func checkKept(v *Evidence) (breaches []string) {
	holds := v.byName()[keptName]
	for i, h := range holds {
		if h.Keep == 0 || h.Outcome != "ok" || len(h.Beliefs) == 0 {
			continue
		}
		until := h.Beliefs[0].Until - int64(v.ttl) + h.Keep - max(rounding, h.Keep/50)
		for _, b := range holds[i+1:] {
			if b.Answered < until && b.Last > 0 && !v.forgot(keptName, h.Asked, b.Answered) {
				breaches = append(breaches, fmt.Sprintf("%s: %s got it %.0f ms after the grant of %s", keptName, b.ID, 1000*seconds(b.Answered-h.Answered), h.ID))
			}
		}
	}
	return breaches
}

// checkDone looks at jobs that are done: none runs again within its window, and none is said to be done before somebody was
// about to say so.
func checkDone(v *Evidence) (breaches []string) {
	first := make(map[string]int64) // when a job could be done at the earliest
	for _, h := range v.Holds {
		if at, ok := first[h.Name]; h.Complete && (!ok || h.Releasing < at) {
			first[h.Name] = h.Releasing
		}
	}
	for _, c := range v.Calls {
		if at, ok := first[c.Asked.Name]; c.Answered.Class == "done" && (!ok || c.Answered.At < at) {
			breaches = append(breaches, fmt.Sprintf("%s: %s was told that it is done, and nobody had done it", c.Asked.Name, c.Asked.ID))
		}
	}
	for name, holds := range v.byName() {
		if !isJob(name) {
			continue
		}
		for _, a := range holds {
			for _, b := range holds {
				if again := v.again(a, b); again > 0 {
					breaches = append(breaches, fmt.Sprintf("%s: %s got it %.0f ms after %s had done it", name, b.ID, 1000*seconds(again), a.ID))
				}
			}
		}
	}
	return breaches
}

// again is how long after the end of a job it was begun again, 0 if it was not.
func (v *Evidence) again(a, b *Hold) int64 {
	if !a.Complete || a.Outcome != "ok" || b.Asked < a.ReleasedAt {
		return 0
	}
	if b.Answered > a.Releasing+int64(window) || v.forgot(a.Name, a.Releasing, b.Answered) {
		return 0
	}
	return b.Asked - a.ReleasedAt
}

// checkStore looks at what the fenced store let through: fences that never fall, and each of one lease only.
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

// StaleWrites is how many writes the naive store took from a lease after it had taken one of a later lease, and how many of
// them the fenced one took.
func (v *Evidence) StaleWrites() (naive, fenced int) {
	latest := make(map[string]uint64)
	for _, e := range v.Events {
		if e.Kind != Wrote {
			continue
		}
		if e.Fence < latest[e.Name] {
			naive++
			if e.Fenced {
				fenced++
			}
		}
		latest[e.Name] = max(latest[e.Name], e.Fence)
	}
	return naive, fenced
}

// checkOwner looks for servers that changed a lock for somebody else than its owner; and for leases that were trusted for
// long after an operator had taken their name, although nothing kept their holder from asking: the next renewal tells.
func checkOwner(v *Evidence) (breaches []string) {
	for _, l := range v.Servers {
		breaches = append(breaches, l.Breaches...)
	}
	bound := 2*v.ttl/3 + 150*time.Millisecond // a renewal period, and an attempt; and a busy machine
	deaf := func(e Event) bool { return !slices.Contains(harmless, e.Fault) }
	for _, h := range v.Holds {
		g := h.Grant
		if g == nil || g.End != endOperator {
			continue
		}
		if late := time.Duration(h.Last - g.To); late > bound && !v.trouble(h.Worker, g.To-int64(v.ttl), h.Last, deaf) {
			breaches = append(breaches, fmt.Sprintf("%s: %s was trusted for %v after it was taken away", h.Name, h.ID, late))
		}
	}
	return breaches
}

// checkLeft looks at what was left when all was quiet; for grants that nobody gave back although nothing was in the way of
// that; and for names that were left for a hand-off for longer than promised.
func checkLeft(v *Evidence) (breaches []string) {
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
	hard := func(e Event) bool { return e.Fault != "delay" } // such faults may keep a clean-up from its work
	for _, g := range v.grants() {
		if long := g.Steps[0].expiry - g.From; strings.HasPrefix(g.Token, "!") && long > int64(v.ttl*3/10) {
			breaches = append(breaches, fmt.Sprintf("%s: %s has left it for a hand-off for %.3f ms", g.Name, g.Worker, 1000*seconds(long)))
		}
		if g.Worker != "" && !g.Kept && g.End == endExpired && !v.trouble(g.Worker, g.From-int64(v.ttl), g.To, hard) {
			breaches = append(breaches, fmt.Sprintf("%s: a grant to %s was left to its TTL", g.Name, g.Worker))
		}
	}
	return breaches
}

// usualSlack is how much later than promised a call may come back: 50 ms are promised; the rest is a busy machine's.
const usualSlack = 350 * time.Millisecond

// checkServed looks for calls that came back later than their ctx or their own bound, or with an answer that the documentation
// does not have; and at what it took to get every name once the faults were over.
func checkServed(v *Evidence) (breaches []string) {
	slack := int64(cmp.Or(v.slack, usualSlack))
	attempt := int64(min(v.ttl/3, 2*time.Second)) + slack
	for _, c := range v.Calls {
		if c.Answered.Class == "other" {
			breaches = append(breaches, fmt.Sprintf("%s: %s", c.Answered.ID, c.Answered.Error))
		}
		bound := c.Asked.Deadline + slack
		if c.Asked.Try {
			bound = min(bound, c.Asked.At+attempt)
		}
		breaches = append(breaches, v.overdue(c.Asked, c.Answered.At, bound)...)
	}
	released, probes := make(map[string]int64), 0
	for _, h := range v.Holds {
		released[h.ID] = h.ReleasedAt
	}
	others := 1500*time.Millisecond - usualSlack + time.Duration(slack) // who probe
	for _, e := range v.Events {
		switch e.Kind {
		case Releasing:
			breaches = append(breaches, v.overdue(e, released[e.ID], min(max(e.Deadline, e.At)+slack, e.At+attempt))...)
		case Released:
			if e.Class == "other" {
				breaches = append(breaches, fmt.Sprintf("%s: %s", e.ID, e.Error))
			}
		case Probed:
			probes++
			if bound := v.ttl + v.ttl/3 + others; e.Class != "ok" || time.Duration(e.Count) > bound { // TTL, re-check
				breaches = append(breaches, fmt.Sprintf("%s: %s took %v: %s", e.Name, e.Worker, time.Duration(e.Count), e.Class))
			}
		default:
		}
	}
	if probes == 0 {
		breaches = append(breaches, "nobody has probed")
	}
	return breaches
}

func (v *Evidence) overdue(e Event, end, bound int64) []string {
	frozen := func(e Event) bool { return e.Fault == "stop" || e.Fault == "kill" || e.Fault == "starve" }
	switch {
	case end == 0 && !v.trouble(e.Worker, e.At, bound, frozen):
		return []string{fmt.Sprintf("%s: %s %s has no end", e.Name, e.Kind, e.ID)}
	case end > bound+v.stalled(e.Worker, e.At, end) && !v.trouble(e.Worker, e.At, end, frozen):
		return []string{fmt.Sprintf("%s: %s %s came back %.0f ms late", e.Name, e.Kind, e.ID, 1000*seconds(end-bound))}
	}
	return nil
}
