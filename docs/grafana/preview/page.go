package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"column": func(n int) float64 { return float64(n) * 100 / 24 },
	"row":    func(n int) int { return n * rowHeight },
	"chart":  newChart,
	"colour": func(i int) string { return colours[i%len(colours)] },
}).Parse(pageText))

// rowHeight is that of one row of the dashboard's grid, in pixels.
const rowHeight = 36

var colours = []string{"#73bf69", "#f2cc0c", "#5794f2", "#ff780a", "#f2495c", "#b877d9", "#8ab8ff", "#fade2a"}

// chart is a panel in a box of 1000 × 1000.
type chart struct {
	Lines []line
	Ticks []tick
	Big   string // what a stat panel says
	Alarm bool
}

type line struct{ Legend, Path string }

type tick struct {
	Y    float64 // percent from the top
	Text string
}

func newChart(d *dashboard, p *panel) (c chart) {
	unit := p.FieldConfig.Defaults.Unit
	if p.Type == "stat" {
		value := last(p.Series)
		c.Big = format(value, unit)
		if n := p.FieldConfig.Defaults.Decimals; n != nil {
			c.Big = strconv.FormatFloat(value, 'f', *n, 64)
		}
		for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
			c.Alarm = c.Alarm || step.Value != nil && value >= *step.Value
		}
		return c
	}
	top := 0.0
	for _, s := range p.Series {
		for _, v := range s.Points {
			top = max(top, v.Value)
		}
	}
	step := roundStep(top / 4)
	top = max(step, math.Ceil(top/step)*step)
	for y := 0.0; y <= top*1.001; y += step {
		c.Ticks = append(c.Ticks, tick{100 - y/top*100, format(y, unit)})
	}
	for _, s := range p.Series {
		var path strings.Builder
		before := 0.0
		for _, v := range s.Points {
			command := "L"
			if v.At-before > 1.5 { // a gap
				command = "M"
			}
			before = v.At
			fmt.Fprintf(&path, "%s%.0f %.0f", command, (v.At-d.From)/(d.To-d.From)*1000, 1000-v.Value/top*1000)
		}
		c.Lines = append(c.Lines, line{s.Legend, path.String()})
	}
	return c
}

func last(all []*series) float64 {
	if len(all) == 0 || len(all[0].Points) == 0 {
		return math.NaN()
	}
	return all[0].Points[len(all[0].Points)-1].Value
}

// roundStep is the next 1, 2 or 5 of its order of magnitude.
func roundStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	order := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if v <= n*order {
			return n * order
		}
	}
	return 10 * order
}

func format(v float64, unit string) string {
	switch {
	case math.IsNaN(v):
		return "no data"
	case unit == "percentunit":
		return fmt.Sprintf("%.3g%%", v*100)
	case unit == "s" && v > 0 && v < 1:
		return fmt.Sprintf("%.3g ms", v*1000)
	case unit == "s":
		return fmt.Sprintf("%.3g s", v)
	case unit == "ops":
		return fmt.Sprintf("%.4g/s", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}
