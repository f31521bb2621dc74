//go:build linux

package weather

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

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
		if first, ok := owner[of]; ok && first != e.ID && !v.tornByID(first, e.ID) {
			breaches = append(breaches, fmt.Sprintf("%s: fence %d belongs to %s and to %s", e.Name, e.Fence, first, e.ID))
		}
		largest[e.Name], owner[of] = max(largest[e.Name], e.Fence), e.ID
	}
	return breaches
}

// StaleWrites is how many writes the naive store took from a lease after it had taken one of
// a later lease, and how many of them the fenced one took. The later one has the larger fence,
// or was granted later where there are no fences.
func (v *Evidence) StaleWrites() (naive, fenced int) {
	rank := make(map[string]uint64)
	for _, h := range v.Holds {
		rank[h.ID] = cmp.Or(h.Fence, uint64(h.Answered)) //nolint:gosec // G115: a time
	}
	latest := make(map[string]uint64)
	for _, e := range v.Events {
		if e.Kind != Wrote {
			continue
		}
		if rank[e.ID] < latest[e.Name] {
			naive++
			if e.Fenced {
				fenced++
			}
		}
		latest[e.Name] = max(latest[e.Name], rank[e.ID])
	}
	return naive, fenced
}

// margins says by how much the servers would have kept each lease beyond the last instant at
// which it was trusted, had nobody taken it away: as many of them as decide.
func (v *Evidence) margins(tell func(h *Hold, margin int64, granted bool)) {
	if len(v.Servers) == 0 {
		return
	}
	reigns := make([]map[[2]string][]*Reign, len(v.Servers))
	for i, l := range v.Servers {
		reigns[i] = make(map[[2]string][]*Reign)
		for _, r := range slices.Concat(l.Reigns, l.Shares) {
			if !r.Kept {
				key := [2]string{r.Worker, r.Name}
				reigns[i][key] = append(reigns[i][key], r)
			}
		}
	}
	for _, h := range v.Holds {
		if h.Mode == Degraded {
			continue
		}
		points := []int64{h.Last}
		for _, e := range h.Beliefs {
			points = append(points, e.Last)
		}
		for _, at := range points {
			if at == 0 {
				continue
			}
			var promised []int64
			for _, own := range reigns {
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
func paperExpiry(own []*Reign, at int64) (expiry int64, granted bool) {
	for _, r := range own {
		freed := (r.End == endFreed || r.End == endBreach) && r.To+clockError <= at
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
