//go:build linux

package weather

import (
	"fmt"
	"slices"
	"time"
)

// dataFaults take names away, and leave everybody able to hear of it.
var dataFaults = []string{"flush", "delete", "foreign", "expire", "persist", "unline", "unbeat", "seize", "counter", "ahead"}

// checkAnnounced looks for leases that were trusted for long after an operator had taken their
// name, although nothing kept their holder from asking: the next renewal tells.
func checkAnnounced(v *Evidence) (breaches []string) {
	const slack = 150 * time.Millisecond // for a busy machine
	deaf := func(e Event) bool { return !slices.Contains(dataFaults, e.Fault) }
	for _, h := range v.Holds {
		r := h.Reign
		if r == nil || r.End != endOperator {
			continue
		}
		bound := 2*life(h.Name)/3 + slack // a renewal period, and an attempt
		if late := time.Duration(h.Last - r.To); late > bound && !v.trouble(h.Worker, r.To-int64(life(h.Name)), h.Last, deaf) {
			breaches = append(breaches, fmt.Sprintf("%s: %s was trusted for %v after it was taken away", h.Name, h.ID, late))
		}
	}
	return breaches
}
