package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// charts are the pictures of figures, by their names in docs.
var charts = map[string]func(figures) ([]byte, error){
	"performance-pairs.svg":   pairs,
	"performance-name.svg":    oneName,
	"performance-waiting.svg": waiting,
	"performance-held.svg":    held,
}

// panel is one scale with a line for each contestant.
type panel struct {
	scenario    string
	contestants []string // nil for all
	figure      string
	title       string
	logarithmic bool // dots, since the length of a bar would mean nothing
	also        string
	alsoText    string // how to say the second figure
}

const (
	rowHeight = 20.0
	labels    = 150.0 // where the scale begins
	scaleEnd  = 545.0 // the rest is for what stands behind a bar
	plotWidth = scaleEnd - labels
)

func pairs(f figures) ([]byte, error) {
	title := "Uncontended: an acquire and its release, pairs per second. Longer is better."
	peers := []string{"Holdfast", "floor auto-pipelined", "floor", "rueidislock noloop", "rueidislock", "bsm 10 ms", "redsync"}
	return sheet(f, title, []panel{
		{scenario: "pair", contestants: peers, figure: "pairs/s", title: "1 goroutine"},
		{scenario: "pairs-64", contestants: peers, figure: "pairs/s", title: "64 goroutines, distinct names"},
		{scenario: "pairs-512", contestants: peers, figure: "pairs/s", title: "512 goroutines, distinct names"},
	})
}

func oneName(f figures) ([]byte, error) {
	title := "One name that everybody wants: acquisitions per second (fairness: 1 is best)"
	return sheet(f, title, []panel{
		{scenario: "one-name", figure: "acquisitions/s", title: "64 goroutines of one process", also: "Jain", alsoText: "fairness %.2f"},
		{scenario: "one-name-wide", figure: "acquisitions/s", title: "8 processes, 4 goroutines each", also: "Jain", alsoText: "fairness %.2f"},
	})
}

func waiting(f figures) ([]byte, error) {
	title := "What waiting costs. Further left is better; each step is ten times the one before."
	return sheet(f, title, []panel{
		{
			scenario: "handover", figure: "p50, ms", logarithmic: true,
			title: "From a release to the next holder, in another process: median, ms",
		},
		{
			scenario: "waiting", figure: "commands/s", logarithmic: true,
			title: "1,000 goroutines of one process that wait for one name: commands per second",
		},
	})
}

func held(f figures) ([]byte, error) {
	title := "Leases that are held and renewed, TTL 10 s. Shorter is better."
	var panels []panel
	for _, s := range []struct{ scenario, many string }{{"held-10000", "10,000"}, {"held-100000", "100,000"}} {
		panels = append(panels,
			panel{scenario: s.scenario, figure: "client CPU per lease, µs/s", title: s.many + " leases: CPU time of the client for each, µs per second"},
			panel{scenario: s.scenario, figure: "bytes per lease", title: s.many + " leases: memory of the client for each, bytes"},
			panel{scenario: s.scenario, figure: "goroutines more than idle", title: s.many + " leases: goroutines in all"})
	}
	return sheet(f, title, panels)
}

// sheet is panels, one below the other.
func sheet(f figures, title string, panels []panel) ([]byte, error) {
	p := &picture{title: title}
	y := 30.0
	p.text(16, y, "t", "start", 15, "*"+title)
	for _, each := range panels {
		var err error
		if y, err = each.draw(p, f, y+34); err != nil {
			return nil, err
		}
	}
	for _, line := range legend(f) {
		y += 17
		p.text(16, y+14, "m", "start", 12, line)
	}
	p.height = int(y) + 32
	return p.bytes(), nil
}

// legend says what machine that was, and where the rest stands.
func legend(f figures) []string {
	machine, rounds, _ := strings.Cut(f.Run, "; ")
	return []string{
		machine + ".",
		strings.Replace(rounds, "medians (quartiles) of", "Medians of", 1) + ". Only ratios mean anything elsewhere.",
	}
}

// draw returns where the panel ends.
func (n panel) draw(p *picture, f figures, y float64) (float64, error) {
	s, err := f.table(n.scenario)
	if err != nil {
		return 0, err
	}
	names := n.contestants
	if names == nil {
		for _, r := range s.Rows {
			names = append(names, r.Contestant)
		}
	}
	var values []float64
	for _, name := range names {
		v, err := s.value(name, n.figure)
		if err != nil {
			return 0, err
		}
		values = append(values, v)
	}
	p.text(16, y, "t", "start", 13, "*"+n.title)
	top := y + 10
	bottom := top + rowHeight*float64(len(names))
	scale := linear(values)
	if n.logarithmic {
		scale = logarithmic(values)
		grid(p, scale, top, bottom, values)
		bottom += 14
	}
	for i, name := range names {
		line := top + rowHeight*float64(i)
		p.text(labels-8, line+14, "t", "end", 12, emphasis(name))
		end := n.mark(p, scale(values[i]), line, class(name))
		said := text(values[i], decimals(values))
		if n.also != "" {
			second, err := s.value(name, n.also)
			if err != nil {
				return 0, err
			}
			said += ", " + fmt.Sprintf(n.alsoText, second)
		}
		p.text(end+6, line+14, "t", "start", 12, said)
	}
	return bottom, nil
}

// mark draws a bar or a dot, and returns where it ends.
func (n panel) mark(p *picture, x, line float64, class string) (end float64) {
	if n.logarithmic {
		p.add(`<circle class="%s" cx="%s" cy="%s" r="5"/>`, class, num(labels+x), num(line+10))
		return labels + x + 5
	}
	p.rect(labels, line+3, max(x, 1), rowHeight-6, class)
	return labels + max(x, 1)
}

// grid draws a line for each power of ten.
func grid(p *picture, scale func(float64) float64, top, bottom float64, values []float64) {
	for e := math.Floor(math.Log10(slices.Min(values))); e <= math.Ceil(math.Log10(slices.Max(values))); e++ {
		v := math.Pow(10, e)
		x := labels + scale(v)
		p.line(x, top, x, bottom, "g")
		p.text(x, bottom+13, "m", "middle", 12, text(v, max(0, int(-e))))
	}
}

func linear(values []float64) func(float64) float64 {
	most := slices.Max(values)
	return func(v float64) float64 { return v / most * plotWidth }
}

func logarithmic(values []float64) func(float64) float64 {
	low, high := math.Floor(math.Log10(slices.Min(values))), math.Ceil(math.Log10(slices.Max(values)))
	return func(v float64) float64 { return (math.Log10(v) - low) / (high - low) * plotWidth }
}

const us = "Holdfast"

func emphasis(name string) string {
	if name == us {
		return "*" + name
	}
	return name
}

// class tells Holdfast, its peers, and the floor, which is no lock, apart.
func class(name string) string {
	switch {
	case name == us:
		return "us"
	case strings.HasPrefix(name, "floor"):
		return "floor"
	default:
		return "them"
	}
}

// decimals is how many the page gives these figures: those of the most exact one.
func decimals(values []float64) int {
	most := 0
	for _, v := range values {
		_, part, _ := strings.Cut(strconv.FormatFloat(v, 'f', -1, 64), ".")
		most = max(most, len(part))
	}
	return most
}

// text writes a figure with commas between thousands.
func text(v float64, decimals int) string {
	whole, part, found := strings.Cut(strconv.FormatFloat(v, 'f', decimals, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		return whole + "." + part
	}
	return whole
}
