//go:build linux

package weather

import "fmt"

// checkSeized looks for tenures that an operator ended, and that were not there yet when he looked.
func checkSeized(v *Evidence) (breaches []string) {
	for _, e := range v.Events {
		if e.Kind == Seized && e.Class == "ok" {
			breaches = append(breaches, v.seizedTooLate(e)...)
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
