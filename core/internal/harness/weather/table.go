//go:build linux

package weather

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Tables are the figures of some runs, of which docs/verification.md shows a part: a table with a column for
// each run, and one of how long it took to recover from each kind of fault.
func Tables(runs []Figures) string {
	var text strings.Builder
	row := func(what string, of func(f *Figures) string) {
		text.WriteString("| " + what + " |")
		for i := range runs {
			text.WriteString(" " + cmp.Or(of(&runs[i]), "–") + " |")
		}
		text.WriteString("\n")
	}
	head := func(what string) {
		row(what, func(f *Figures) string { return f.Service })
		text.WriteString("|---" + strings.Repeat("|---", len(runs)) + "|\n")
	}
	head("")
	for _, r := range rows {
		row(r.what, r.of)
	}
	text.WriteString("\n")
	head("fault")
	kinds := make(map[string]bool)
	for _, f := range runs {
		for kind := range f.Recovery {
			kinds[kind] = true
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		row(kind, func(f *Figures) string {
			if s := f.Recovery[kind]; s.N > 0 {
				return millis(s.P50) + " / " + millis(s.Max)
			}
			return ""
		})
	}
	return text.String()
}

// rows are those of the first table.
var rows = []struct {
	what string
	of   func(f *Figures) string
}{
	{"seed; faults", func(f *Figures) string { return fmt.Sprintf("%d; %d", f.Seed, sum(f.Faults)) }},
	{"calls: granted, held, done, ended, unavailable, degraded", func(f *Figures) string {
		o := f.Outcomes
		return fmt.Sprintf("%d, %d, %d, %d, %d, %d", o["ok"], o["held"], o["done"], o["ended"], o["unavailable"], o[string(Degraded)])
	}},
	{"overlaps that nothing explains", func(f *Figures) string { return fmt.Sprintf("**%d**", f.Overlaps) }},
	{"and those that are explained, by what", func(f *Figures) string {
		var all []string
		for _, why := range slices.Sorted(maps.Keys(f.Explained)) {
			all = append(all, fmt.Sprintf("%d %s", f.Explained[why], why))
		}
		return strings.Join(all, ", ")
	}},
	{"two masters, s: longest (how often)", func(f *Figures) string {
		if f.TwoMasters.N == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f (%d)", f.TwoMasters.Max.Seconds(), f.TwoMasters.N)
	}},
	{"late writes: the naive store took, the fenced one", func(f *Figures) string {
		if f.Service == Redlock {
			return fmt.Sprintf("%d, not tried", f.StaleNaive)
		}
		return fmt.Sprintf("%d, **%d**", f.StaleNaive, f.StaleFenced)
	}},
	{"fences that two leases have, that fell", func(f *Figures) string {
		return fmt.Sprintf("%d, %d", f.FencesTwice, f.FencesFallen)
	}},
	{"least margin, ms", func(f *Figures) string { return watched(f, millis(f.LeastMargin)) }},
	{"a loss is noticed after, ms", func(f *Figures) string { return f.Notice.text() }},
	{"hand-over to another process that waits, ms", func(f *Figures) string { return f.HandOff.text() }},
	{"hand-over by a hand-off, ms", func(f *Figures) string { return f.PassedOn.text() }},
	{"from the SIGKILL of a holder until somebody has the name, ms", func(f *Figures) string { return f.TakeOver.text() }},
	{"a name is had after the heal in, ms", func(f *Figures) string { return f.Probe.text() }},
	{"orphans; longest life, s", func(f *Figures) string {
		if f.Orphans == 0 {
			return ""
		}
		return fmt.Sprintf("%d; %.1f", f.Orphans, f.LongestLife.Seconds())
	}},
	{"server commands for a grant, those inside scripts too", func(f *Figures) string { return watched(f, fmt.Sprintf("%.0f", f.CommandsPerGrant)) }},
	{"leaks", func(f *Figures) string { return fmt.Sprint(f.Leaks) }},
	{"checked in, s", func(f *Figures) string { return fmt.Sprintf("%.1f", f.Checking.Seconds()) }},
}

// watched is what is known only where the servers' commands are.
func watched(f *Figures, text string) string {
	if f.CommandsPerGrant == 0 {
		return ""
	}
	return text
}

func (s Spread) text() string {
	if s.N == 0 {
		return ""
	}
	return fmt.Sprintf("%s / %s / %s (%d)", millis(s.P50), millis(s.P99), millis(s.Max), s.N)
}

// millis is a duration in milliseconds, with as many digits as mean something.
func millis(d time.Duration) string {
	n := float64(d) / float64(time.Millisecond)
	if n < 10 {
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.0f", n)
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
