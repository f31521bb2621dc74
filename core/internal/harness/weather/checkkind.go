//go:build linux

package weather

import (
	"cmp"
	"fmt"
	"slices"
)

// checkSharing looks at the names that several may hold: no writer beside anybody, no more
// than there are places, and fences that tell a reader which writer's work it sees.
func checkSharing(v *Evidence) (breaches []string) {
	for name, holds := range v.byName() {
		if !together(name) {
			continue
		}
		for i, a := range holds {
			for _, b := range holds[i+1:] {
				if !a.beside(b) && v.overlap(a, b) == unexplained {
					breaches = append(breaches, fmt.Sprintf("%s: %s (%s) and %s (%s) were both trusted for %.1f ms", name,
						a.ID, a.Mode, b.ID, b.Mode, 1000*seconds(min(a.Last, b.Last)-max(a.Answered, b.Answered))))
				}
				if !v.torn(a, b) && !v.rewound(a, b) {
					breaches = append(breaches, fencesOf(a, b)...)
				}
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
	if b.ReleasedAt != 0 && b.ReleasedAt < a.Asked {
		a, b = b, a
	}
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
		if h.Mode == Limited && h.Answered < h.Last && !v.doomedAt(h, h.Last) && !v.strandedAt(h, h.Last) {
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

// checkKept looks for names that somebody got before the time that WithMinHold had kept them for.
func checkKept(v *Evidence) (breaches []string) {
	for _, h := range v.Holds {
		if h.Keep == 0 || h.Reign == nil || h.Outcome != "ok" {
			continue
		}
		until := h.Reign.From + int64(keep) - rounding
		for _, r := range v.reigns() {
			if r.Name == keptName && !r.Kept && h.Reign.From < r.From && r.From < until && !v.forgot(keptName, h.Reign.From, r.From) {
				breaches = append(breaches, fmt.Sprintf("%s: %s got it %.0f ms after the grant of %s", keptName, r.Worker,
					1000*seconds(r.From-h.Reign.From), h.ID))
			}
		}
	}
	return breaches
}

// checkDone looks at jobs that are done: none runs again within its window, and none is said
// to be done before somebody was about to say so.
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

// forgot says whether a service forgot what it knew of a name within the time.
func (v *Evidence) forgot(name string, from, to int64) bool {
	within := func(s span) bool { return from < s.to && s.from < to }
	if slices.ContainsFunc(slices.Concat(v.losses(name), v.takeovers()), within) {
		return true
	}
	for _, l := range v.Servers {
		for _, s := range l.Seizures {
			if (s.Name == "" || s.Name == name) && within(span{s.At - clockError, s.At + clockError}) {
				return true
			}
		}
	}
	return false
}
