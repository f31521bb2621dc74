//go:build linux

package weather

import (
	"fmt"
	"slices"
	"time"
)

// harmless faults keep nobody from standing in line.
var harmless = append(slices.Clone(dataFaults), "deafen", "scripts")

// checkFair looks for processes that waited for a name while another one had it again and again: each
// has it once before who stands in line.
func checkFair(v *Evidence) (breaches []string) {
	const often = 5
	if v.Service != One { // no line, or nobody who says what is in it
		return nil
	}
	for _, c := range v.Calls {
		if c.Asked.Try || c.Answered.At == 0 || c.Asked.Name != busyName && !slices.Contains(sharedNames, c.Asked.Name) {
			continue
		}
		from := v.stands(c)
		if from >= c.Answered.At || v.trouble(c.Asked.Worker, c.Asked.At, c.Answered.At, func(e Event) bool { return !slices.Contains(harmless, e.Fault) }) {
			continue
		}
		for other, n := range v.passed(c, from) {
			if n >= often {
				breaches = append(breaches, fmt.Sprintf("%s: %s waited for %.0f ms in line, and %s had it %d times", c.Asked.Name, c.Asked.ID,
					1000*seconds(c.Answered.At-from), other, n))
			}
		}
	}
	return breaches
}

// stands is from when on the process of a call that waits has a place in line: some time after it was
// asked, after the process has last had the name, and after the line was last deleted.
func (v *Evidence) stands(c *Call) int64 {
	const settle = TTL/3 + 350*time.Millisecond // a re-check, and a busy machine
	from := c.Asked.At
	for _, r := range v.reigns() {
		if r.Name == c.Asked.Name && r.Worker == c.Asked.Worker && r.From < c.Answered.At && r.To < c.Answered.At {
			from = max(from, r.To)
		}
	}
	for _, l := range v.Servers {
		for _, at := range l.Emptied[c.Asked.Name] {
			if at < c.Answered.At {
				from = max(from, at)
			}
		}
	}
	return from + int64(settle)
}

// passed is how often each other process got the name in that time.
func (v *Evidence) passed(c *Call, from int64) map[string]int {
	counts := make(map[string]int)
	for _, r := range v.reigns() {
		if r.Name == c.Asked.Name && r.Worker != c.Asked.Worker && r.Worker != "" && from < r.From && r.From < c.Answered.At {
			counts[r.Worker]++
		}
	}
	return counts
}
