package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// table is what came out of a scenario, in Markdown: what each row has shown, and what Holdfast has to it.
func (s scenario) table(results []result) string {
	w := &strings.Builder{}
	fmt.Fprintf(w, "\n### %s (`%s`)\n\n%s\n\n| |", s.title, s.name, s.about)
	for _, c := range s.columns {
		fmt.Fprintf(w, " %s |", c.title)
	}
	fmt.Fprintf(w, " faults |\n|---|%s---|\n", strings.Repeat("---:|", len(s.columns)))
	line := func(name string, cell func(i int) string, end string) {
		fmt.Fprintf(w, "| %s |", name)
		for i := range s.columns {
			fmt.Fprintf(w, " %s |", cell(i))
		}
		fmt.Fprintf(w, " %s |\n", end)
	}
	for _, r := range results {
		line(r.name, func(i int) string { return spreadOf(r.values(i)).in(s.columns[i].format) }, r.faults.String())
	}
	ours := slices.IndexFunc(results, func(r result) bool { return r.name == holdfastName })
	for i, r := range results {
		if ours >= 0 && i != ours {
			line("Holdfast ÷ "+r.name, func(i int) string { return ratio(results[ours], r, i).in("%.3g") }, "")
		}
	}
	return w.String()
}

// legend says what the contestants are, once for all tables.
func legend(all []scenario) string {
	w := &strings.Builder{}
	for _, c := range contestants() {
		if slices.ContainsFunc(all, func(s scenario) bool {
			return slices.ContainsFunc(s.rows, func(r row) bool { return r.contestant == c.name })
		}) {
			fmt.Fprintf(w, "- **%s**: %s\n", c.name, c.settings)
		}
	}
	return w.String()
}

// values are those of a column, round by round; NaN where there is none.
func (r result) values(column int) []float64 {
	v := make([]float64, len(r.rounds))
	for i, figures := range r.rounds {
		v[i] = math.NaN()
		if figures != nil {
			v[i] = figures[column]
		}
	}
	return v
}

// ratio is a's figure divided by b's, round by round.
func ratio(a, b result, column int) spread {
	over, under := a.values(column), b.values(column)
	for i := range over {
		over[i] /= under[i]
	}
	return spreadOf(over)
}

// in writes the median and, if there are several rounds, the quartiles.
func (s spread) in(format string) string {
	switch {
	case math.IsNaN(s.Median):
		return "–"
	case s.Low == s.High:
		return fmt.Sprintf(format, s.Median)
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.Median, s.Low, s.High)
}

func (f faults) String() string {
	if f.Failed == 0 {
		return "none"
	}
	return fmt.Sprintf("%d calls failed, %s", f.Failed, strings.ReplaceAll(f.Note, "\n", " "))
}
