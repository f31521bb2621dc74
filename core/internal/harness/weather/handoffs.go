//go:build linux

package weather

import "github.com/anishathalye/porcupine"

// leftUntil is until when a detached name is certainly taken, 0 if h was not detached.
func (h *Hold) leftUntil() int64 {
	if h.Left == 0 {
		return 0
	}
	return h.Releasing + h.Left - rounding
}

// lostHandoffs are those with which somebody came for a name who was not told that he has it: it may
// have been granted, and given back. So it may by a master that goes on, where nobody knows which one has granted.
func (v *Evidence) lostHandoffs(name string) (ops []porcupine.Operation) {
	until, stranded := make(map[string]int64), make(map[string]bool)
	for _, h := range v.Holds {
		until[h.ID], stranded[h.ID] = h.leftUntil(), v.strandedAt(h, h.Answered)
	}
	for _, c := range v.Calls {
		got := c.Answered.Class == "ok" && c.Answered.Mode != Degraded && !stranded[c.Answered.ID]
		if t := c.Asked.Handoff; t != "" && c.Asked.Name == name && !got && c.Asked.At < until[t] {
			ops = append(ops, operation(op{verb: used, handoff: t}, c.Asked.At, until[t]))
		}
	}
	return ops
}

// passes is how long it took from a Detach until somebody had the name by its hand-off, of those
// who came in time.
func (v *Evidence) passes() (all []int64) {
	givers := make(map[string]*Hold)
	for _, h := range v.Holds {
		givers[h.ID] = h
	}
	for _, h := range v.Holds {
		if g := givers[h.Handoff]; g != nil && h.Answered < g.leftUntil() {
			all = append(all, h.Answered-g.Releasing)
		}
	}
	return all
}
