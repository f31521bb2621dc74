//go:build linux

package weather

import "fmt"

// checkSeized looks for leases that an operator ended by a fence that is not theirs, and for
// tenures that were not there yet when he looked.
func checkSeized(v *Evidence) (breaches []string) {
	for _, e := range v.Events {
		if e.Kind == Seized && e.Class == "ok" {
			breaches = append(append(breaches, v.seizedByMistake(e)...), v.seizedTooLate(e)...)
		}
	}
	return breaches
}

func (v *Evidence) seizedByMistake(e Event) (breaches []string) {
	for _, h := range v.Holds {
		if e.Fence == 0 || h.Fence == e.Fence || h.Name != e.Name || !h.holds() {
			continue
		}
		had := h.Answered < e.Last && h.Last > e.Last && (h.Releasing == 0 || h.Releasing > e.At)
		if had && !v.doomedAt(h, e.Last) {
			breaches = append(breaches, fmt.Sprintf("%s: %s has fence %d, and was released by force with %d", h.Name, h.ID, h.Fence, e.Fence))
		}
	}
	return breaches
}

func (v *Evidence) seizedTooLate(e Event) (breaches []string) {
	for _, r := range v.reigns() {
		taken := r.Name == e.Name && r.EndedBy == admin && e.Last-clockError < r.To && r.To < e.At+clockError
		if taken && r.From > e.Until+clockError {
			breaches = append(breaches, fmt.Sprintf("%s: %s got it %.1f ms after the operator saw who has it, and it was taken away", r.Name, r.Worker,
				1000*seconds(r.From-e.Until)))
		}
	}
	return breaches
}
