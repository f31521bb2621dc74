package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	growthPage    = "capacity.md"
	growthFigures = "figures/capacity.json"
	growthPicture = "capacity.svg"
)

// growth is what docs/capacity.md shows of a run of "make scale".
type growth struct {
	Run    string  `json:"run"`
	Sweeps []sweep `json:"sweeps"`
}

// sweep is one table: a figure's values at sizes that grow, on one or more lines.
type sweep struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	What   string  `json:"what"`
	By     string  `json:"by,omitempty"`
	Points []point `json:"points"`
	Powers []power `json:"powers"`
}

// point is a row.
type point struct {
	N       float64            `json:"n"`
	By      string             `json:"by,omitempty"`
	Figures map[string]float64 `json:"figures"`
}

// power is the row below a line: the exponents that fit best.
type power struct {
	By      string             `json:"by,omitempty"`
	Figures map[string]float64 `json:"figures"`
}

func (g growth) encode() ([]byte, error) {
	text, err := json.MarshalIndent(g, "", " ")
	return append(text, '\n'), err
}

var fitted = regexp.MustCompile(`^n\^(-?[0-9.]+)`)

// parseGrowth reads the tables that "make scale" has printed, in a page.
func parseGrowth(page string) (g growth, err error) {
	_, page, found := strings.Cut(page, "\n## The last run\n")
	if !found {
		return g, errors.New("no section \"The last run\"")
	}
	page, _, _ = strings.Cut(page, "\n## ")
	var columns []string
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch match := heading.FindStringSubmatch(line); {
		case strings.Contains(line, "redis-server") && strings.HasPrefix(line, "go1"):
			g.Run = strings.TrimSuffix(line, ".")
		case match != nil:
			g.Sweeps, columns = append(g.Sweeps, sweep{Name: match[2], Title: match[1]}), nil
		case strings.HasPrefix(line, "|--"), !strings.HasPrefix(line, "| "):
			if line == "" {
				columns = nil
			}
		case len(g.Sweeps) == 0:
		case columns == nil:
			columns = g.Sweeps[len(g.Sweeps)-1].head(cells(line))
		default:
			if err := g.Sweeps[len(g.Sweeps)-1].add(cells(line), columns); err != nil {
				return g, err
			}
		}
	}
	if g.Run == "" || len(g.Sweeps) == 0 {
		return g, errors.New("no run, or no tables")
	}
	return g, nil
}

// head reads the head of a table, and returns the names of all its columns.
func (s *sweep) head(columns []string) []string {
	s.What = columns[0]
	if columns[1] == "processes" {
		s.By = columns[1]
	}
	return columns
}

func (s *sweep) add(row, columns []string) error {
	if len(row) != len(columns) {
		return fmt.Errorf("%s: %d cells under %d columns", s.Name, len(row), len(columns))
	}
	by, first := "", 1
	if s.By != "" {
		by, first = row[1], 2
	}
	figures, fit := map[string]float64{}, strings.HasPrefix(row[0], "*")
	for i := first; i < len(row); i++ {
		text := row[i]
		if match := fitted.FindStringSubmatch(text); match != nil {
			text = match[1]
		}
		if text == "–" || columns[i] == "faults" {
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%s, %s: %q is no figure", s.Name, columns[i], row[i])
		}
		figures[columns[i]] = x
	}
	if fit {
		s.Powers = append(s.Powers, power{by, figures})
		return nil
	}
	n, err := strconv.ParseFloat(row[0], 64)
	s.Points = append(s.Points, point{n, by, figures})
	return err
}

// curves is one figure of a sweep, over its sizes; both scales are logarithmic.
type curves struct{ sweep, figure, title string }

// growths are the panels of the picture of docs/capacity.md.
var growths = []curves{
	{"held", "server CPU, ms/s", "Leases that are held: CPU time of the server, ms in a second"},
	{"held", "commands/s", "Leases that are held: commands in a second"},
	{"waiters", "commands/s", "Callers that wait for one name: commands in a second"},
	{"turns", "server CPU per acquisition, µs", "Callers that take turns on one name: CPU time of the server for each, µs"},
	{"names", "server CPU, ms/s", "Names that are waited for: CPU time of the server, ms in a second"},
	{"processes", "commands/s", "Processes that hold 20 names and wait for one: commands in a second"},
	{"batch", "server time of a lease, µs", "Renewals in a command: time of the server for each, µs"},
	{"pairs", "server CPU per pair, µs", "Goroutines that acquire and release: CPU time of the server for a pair, µs"},
	{"dead", "server time of a command, µs", "Dead places in a queue: time of the server for a command that drops them, µs"},
}

const (
	plotLeft, plotRight = 60.0, 580.0
	plotHeight          = 96.0
)

// grow draws all curves, one below the other.
func grow(g growth) ([]byte, error) {
	title := "How cost grows: logarithmic scales; k is the exponent that fits best"
	p := &picture{title: title}
	y := 30.0
	p.text(16, y, "t", "start", 15, "*"+title)
	for _, c := range growths {
		i := slices.IndexFunc(g.Sweeps, func(s sweep) bool { return s.Name == c.sweep })
		if i < 0 {
			return nil, fmt.Errorf("no sweep %q", c.sweep)
		}
		y += 34
		if err := c.draw(p, g.Sweeps[i], y); err != nil {
			return nil, err
		}
		y += plotHeight + 40
	}
	machine, runs, _ := strings.Cut(g.Run, "; ")
	p.text(16, y+26, "m", "start", 12, machine+"; "+runs+".")
	p.height = int(y) + 44
	return p.bytes(), nil
}

// draw draws the lines of one figure.
func (c curves) draw(p *picture, s sweep, y float64) error {
	var xs, ys []float64
	for _, at := range s.Points {
		if v := at.Figures[c.figure]; v > 0 {
			xs, ys = append(xs, at.N), append(ys, v)
		}
	}
	if len(xs) < 2 {
		return fmt.Errorf("%s: no %q", s.Name, c.figure)
	}
	p.text(16, y, "t", "start", 13, "*"+c.title)
	top := y + 12
	x, v := decades(xs, plotLeft, plotRight), decades(ys, top+plotHeight, top)
	for _, n := range tens(xs) {
		p.line(x(n), top, x(n), top+plotHeight, "g")
		p.text(x(n), top+plotHeight+15, "m", "middle", 12, text(n, 0))
	}
	for _, n := range tens(ys) {
		p.line(plotLeft, v(n), plotRight, v(n), "g")
		p.text(plotLeft-6, v(n)+4, "m", "end", 12, text(n, max(0, int(-math.Round(math.Log10(n))))))
	}
	p.text(plotRight+34, top+plotHeight+15, "m", "start", 12, s.What)
	for i, line := range s.Powers {
		c.line(p, s, line, x, v, []string{"us", "them", "floor"}[i%3])
	}
	c.labels(p, s, v)
	return nil
}

// line draws one line, and a dot for each figure.
func (c curves) line(p *picture, s sweep, of power, x, y func(float64) float64, class string) {
	var before *point
	for i := range s.Points {
		at := &s.Points[i]
		if at.By != of.By || at.Figures[c.figure] <= 0 {
			continue
		}
		if before != nil {
			p.line(x(before.N), y(before.Figures[c.figure]), x(at.N), y(at.Figures[c.figure]), "a")
		}
		before = at
	}
	for _, at := range s.Points {
		if v := at.Figures[c.figure]; at.By == of.By && v > 0 {
			p.add(`<circle class="%s" cx="%s" cy="%s" r="4"/>`, class, num(x(at.N)), num(y(v)))
		}
	}
}

// labels writes beside the end of each line what it is, and how it grows, without two at one height.
func (c curves) labels(p *picture, s sweep, y func(float64) float64) {
	type label struct {
		y    float64
		text string
	}
	var all []label
	for _, line := range s.Powers {
		var l label
		for _, at := range s.Points {
			if v := at.Figures[c.figure]; at.By == line.By && v > 0 {
				l.y = y(v)
			}
		}
		if line.By != "" {
			l.text = line.By + " proc., "
		}
		if k, ok := line.Figures[c.figure]; ok {
			l.text += fmt.Sprintf("k=%.2f", k)
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b label) int { return int(math.Copysign(1, a.y-b.y)) })
	last := math.Inf(-1)
	for _, l := range all {
		last = max(l.y+4, last+14)
		p.text(plotRight+8, last, "t", "start", 12, l.text)
	}
}

// tens are the powers of ten around some values.
func tens(values []float64) (all []float64) {
	from, to := math.Floor(math.Log10(slices.Min(values))), math.Ceil(math.Log10(slices.Max(values)))
	for e := from; e <= max(to, from+1); e++ {
		all = append(all, math.Pow(10, e))
	}
	return all
}

// decades is a logarithmic scale from one place to another.
func decades(values []float64, from, to float64) func(float64) float64 {
	marks := tens(values)
	low, high := math.Log10(marks[0]), math.Log10(marks[len(marks)-1])
	return func(v float64) float64 { return from + (math.Log10(v)-low)/(high-low)*(to-from) }
}
