//go:build linux

package weather

import (
	"fmt"
	"strings"
)

// checkEarly looks for names that were freed while their holder had not given them back.
func checkEarly(v *Evidence) (breaches []string) {
	for _, h := range v.Holds {
		if h.Reign == nil || h.Reign.End != endFreed || h.Reign.EndedBy != h.Worker || h.Releasing == 0 {
			continue
		}
		if v.cleanedUp(h) {
			continue
		}
		if before := h.Releasing - h.Reign.To; before > clockError {
			breaches = append(breaches, fmt.Sprintf("%s: %s was freed %.1f ms before its release began", h.Name, h.ID, 1000*seconds(before)))
		}
	}
	return breaches
}

// cleanedUp says whether the lease was lost to a fault before its name was freed: a command of its own was open still, so
// its process has cleaned up. Deaf work goes on.
func (v *Evidence) cleanedUp(h *Hold) bool {
	return h.Outcome == "lost" && h.Last <= h.Reign.To && v.trouble(h.Worker, h.Asked, h.Reign.To, hard)
}

// checkSilence looks for commands with tokens that had been given back long before.
func checkSilence(v *Evidence) (breaches []string) {
	for _, l := range v.Servers {
		breaches = append(breaches, v.silence(l)...)
	}
	return breaches
}

// late is longer than a fault holds a request up, and than a release takes.
func late(r *Reign) int64 { return 2 * int64(life(r.Name)) }

func (v *Evidence) silence(l *Ledger) (breaches []string) {
	freed := make(map[string]*Reign)
	for _, r := range l.Reigns {
		if r.End == endFreed || r.End == endBreach {
			freed[r.Token] = r
		}
	}
	for _, c := range l.Commands {
		if !strings.HasPrefix(c.Args[0], "eval") {
			continue
		}
		for _, arg := range c.Args[min(3, len(c.Args)):] {
			r := freed[tokenOf(arg)]
			if r != nil && !r.Kept && c.At > r.To+late(r) && !v.trouble(r.Worker, r.To, c.At, hard) {
				breaches = append(breaches, fmt.Sprintf("%s: %s sends a token %.1f s after its end", r.Name, c.Client, seconds(c.At-r.To)))
			}
		}
	}
	return breaches
}
