package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// outcome is what came out of a scenario.
type outcome struct {
	scenario scenario

	Scenario string
	Title    string
	Results  []result
	Goals    []verdict
}

// legend says what the contestants are, once for all tables.
func legend(all []scenario) string {
	w := &strings.Builder{}
	for _, c := range contestants() {
		if slices.ContainsFunc(all, func(s scenario) bool { return slices.Contains(s.contestants, c.name) }) {
			fmt.Fprintf(w, "- **%s**: %s\n", c.name, c.settings)
		}
	}
	return w.String()
}

// table is what came out, in Markdown.
func (o outcome) table() string {
	w := &strings.Builder{}
	fmt.Fprintf(w, "\n### %s (`%s`)\n\n%s\n\n", o.Title, o.Scenario, o.scenario.about)
	first := o.scenario.columns[0]
	fmt.Fprintf(w, "| | %s | Holdfast ÷ it |", first.title)
	for _, c := range o.scenario.columns[1:] {
		fmt.Fprintf(w, " %s |", c.title)
	}
	fmt.Fprintf(w, " faults |\n|---|%s---|\n", strings.Repeat("---:|", len(o.scenario.columns)+1))
	ours := o.Results[slices.IndexFunc(o.Results, func(r result) bool { return r.Contestant == holdfastName })]
	for _, r := range o.Results {
		fmt.Fprintf(w, "| %s | %s | %s |", r.Contestant, withSpread(first.format, spreadOf(r.values(first.figure))), ratio(ours, r, first.figure))
		for _, c := range o.scenario.columns[1:] {
			fmt.Fprintf(w, " %s |", number(c.format, spreadOf(r.values(c.figure)).Median))
		}
		fmt.Fprintf(w, " %s |\n", &r.Faults)
	}
	if len(o.Goals) == 0 {
		return w.String()
	}
	fmt.Fprint(w, "\n| goal | reached | |\n|---|---:|---|\n")
	for _, v := range o.Goals {
		met := "not met"
		if v.Met {
			met = "met"
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", o.goalText(v), v.Reached, met)
	}
	return w.String()
}

// goalText is a goal in words: "pairs/s ≥ 0.95 × floor".
func (o outcome) goalText(v verdict) string {
	title := v.Figure
	for _, c := range o.scenario.columns {
		if c.figure == v.Figure {
			title = c.title
		}
	}
	sign, times := "≤", ""
	if v.AtLeast {
		sign = "≥"
	}
	if v.Against != "" {
		times = " × " + v.Against
	}
	if v.Fair > 0 {
		times += fmt.Sprintf(", the best with Jain ≥ %.3g", v.Fair)
	}
	return fmt.Sprintf("%s %s %.3g%s", title, sign, v.Bound, times)
}

// String is the median and, in parentheses, the quartiles.
func (s spread) String() string { return withSpread("%.3g", s) }

func withSpread(format string, s spread) string {
	if math.IsNaN(s.Median) {
		return "–"
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.Median, s.Low, s.High)
}

func number(format string, x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return fmt.Sprintf(format, x)
}

// String lists what is not zero.
func (f *faults) String() string {
	if f.none() {
		return "none"
	}
	var said []string
	for _, c := range []struct {
		n    int
		what string
	}{{f.Overlaps, "overlaps"}, {f.Fences, "fences that did not grow"}, {f.Left, "keys left behind"}, {f.Failed, "calls failed"}} {
		if c.n > 0 {
			said = append(said, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if f.Note != "" {
		said = append(said, strings.ReplaceAll(f.Note, "\n", " "))
	}
	return strings.Join(said, ", ")
}

// spaced is a duration as people write it: 10 ms.
func spaced(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
