//go:build linux

package weather

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// hard are the faults that may keep a clean-up from its work.
func hard(e Event) bool { return e.Fault != "delay" }

// soon is how long a grant that nobody waits for may be there; and a busy machine.
const soon = time.Second + 350*time.Millisecond

// checkOrphans looks for grants that nobody has and that were not given back although nothing was in
// the way of that: at all, or for long after the last command that granted them. And for names that
// were left for a hand-off for longer than promised.
func checkOrphans(v *Evidence) (breaches []string) {
	had := make(map[*Reign]bool)
	for _, h := range v.Holds {
		had[h.Reign] = true
	}
	for _, r := range v.reigns() {
		if long := r.Steps[0].expiry - r.From; strings.HasPrefix(r.Token, "!") && long > int64(handoffLife) {
			breaches = append(breaches, fmt.Sprintf("%s: %s has left it for a hand-off for %.0f ms", r.Name, r.Worker, 1000*seconds(long)))
		}
		if r.Worker == "" || r.Kept {
			continue
		}
		switch late := time.Duration(r.To - v.forsaken(r)); {
		case r.End == endExpired && !v.trouble(r.Worker, r.From-int64(TTL), r.To, hard):
			breaches = append(breaches, fmt.Sprintf("%s: a grant to %s was left to its TTL", r.Name, r.Worker))
		case (r.End == endExpired || r.End == endFreed) && !had[r] && late > soon && !v.obstructed(r):
			breaches = append(breaches, fmt.Sprintf("%s: a grant to %s, whom nobody waited for, was there for %v", r.Name, r.Worker, late))
		}
	}
	return breaches
}

// forsaken is when a grant had been executed for the last time, and nobody waited for it any more who may
// have asked for it.
func (v *Evidence) forsaken(r *Reign) int64 {
	at := r.Steps[len(r.Steps)-1].at
	for _, c := range v.Calls {
		if a := c.Asked; a.Name == r.Name && a.Worker == r.Worker && a.At < r.From {
			at = max(at, c.Answered.At)
		}
	}
	return at
}

// tardy faults are those that have a command be executed late.
var tardy = []string{"delay", "uneven", "pause", "hold"}

// obstructed says whether something may have kept a clean-up from its work. Where a server goes on,
// or a link lets go of what was sent, is where a late grant comes from; but after several times in a row
// it may have been on its way for longer than a TTL.
func (v *Evidence) obstructed(r *Reign) bool {
	const before, begun = int64(time.Second), int64(200 * time.Millisecond)
	until := min(r.To, v.forsaken(r)+int64(soon))
	others := func(e Event) bool { return !slices.Contains(tardy, e.Fault) && !slices.Contains(harmless, e.Fault) }
	stops := func(e Event) bool { return e.Fault == "pause" || e.Fault == "hold" }
	stopped := 0
	for _, e := range v.Events {
		mine := e.Worker == "" || isOf(r.Worker, e.Worker)
		if e.Kind == Faulted && stops(e) && mine && r.From-2*int64(life(r.Name)) < e.At && e.At < r.To {
			stopped++
		}
	}
	return stopped > 1 || v.trouble(r.Worker, r.From+begun, until, stops) || v.trouble(r.Worker, r.From-before, until, others)
}
