package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// figures are what docs/performance.md shows of a run.
type figures struct {
	Run       string     `json:"run"` // machine, server and rounds, in a sentence
	Scenarios []scenario `json:"scenarios"`
}

// scenario is one table of the page.
type scenario struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Rows  []row  `json:"rows"`
}

// row is what a contestant reached.
type row struct {
	Contestant string   `json:"contestant"`
	Figures    []figure `json:"figures"`
	Faults     string   `json:"faults,omitempty"` // "" for none
}

// figure is a median, and where the page has them its quartiles.
type figure struct {
	Name   string   `json:"name"`
	Median float64  `json:"median"`
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
}

func (f figures) encode() ([]byte, error) {
	text, err := json.MarshalIndent(f, "", " ")
	return append(text, '\n'), err
}

func decode(text []byte) (f figures, err error) {
	err = json.Unmarshal(text, &f)
	return f, err
}

// table returns a scenario.
func (f figures) table(name string) (scenario, error) {
	for _, s := range f.Scenarios {
		if s.Name == name {
			return s, nil
		}
	}
	return scenario{}, fmt.Errorf("no scenario %q", name)
}

// value returns the median of one figure of a contestant.
func (s scenario) value(contestant, name string) (float64, error) {
	for _, r := range s.Rows {
		if r.Contestant != contestant {
			continue
		}
		for _, x := range r.Figures {
			if x.Name == name {
				return x.Median, nil
			}
		}
	}
	return 0, fmt.Errorf("%s: no %q of %q", s.Name, name, contestant)
}

var (
	heading = regexp.MustCompile("^### (.*) \\(`([a-z0-9-]+)`\\)$")
	spread  = regexp.MustCompile(`^([0-9.e+-]+)(?: \(([0-9.e+-]+)–([0-9.e+-]+)\))?$`)
)

// parse reads the tables that "make bench-peers" has printed, in a page.
func parse(page string) (f figures, err error) {
	_, page, found := strings.Cut(page, "\n## The last run\n")
	if !found {
		return f, errors.New("no section \"The last run\"")
	}
	page, _, _ = strings.Cut(page, "\n## ")
	var columns []string
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch match := heading.FindStringSubmatch(line); {
		case strings.Contains(line, "redis-server") && strings.HasPrefix(line, "go1"):
			f.Run = strings.TrimSuffix(line, ".")
		case match != nil:
			f.Scenarios, columns = append(f.Scenarios, scenario{Name: match[2], Title: match[1]}), nil
		case strings.HasPrefix(line, "| | "):
			columns = cells(line)[1:]
		case strings.HasPrefix(line, "| ") && columns != nil:
			s := &f.Scenarios[len(f.Scenarios)-1]
			r, err := parseRow(cells(line), columns)
			if err != nil {
				return f, fmt.Errorf("%s: %w", s.Name, err)
			}
			s.Rows = append(s.Rows, r)
		case line == "":
			columns = nil // the end of the table
		}
	}
	if f.Run == "" || len(f.Scenarios) == 0 {
		return f, errors.New("no run, or no tables")
	}
	return f, nil
}

func parseRow(cells, columns []string) (row, error) {
	if len(cells) != len(columns)+1 {
		return row{}, fmt.Errorf("%q: %d cells under %d columns", cells[0], len(cells), len(columns)+1)
	}
	r := row{Contestant: cells[0]}
	for i, column := range columns {
		text := cells[i+1]
		if column == "faults" {
			if text != "none" {
				r.Faults = text
			}
			continue
		}
		if text == "–" {
			continue
		}
		match := spread.FindStringSubmatch(text)
		if match == nil {
			return row{}, fmt.Errorf("%q, %s: %q is no figure", cells[0], column, text)
		}
		x := figure{Name: column}
		var err error
		if x.Median, err = strconv.ParseFloat(match[1], 64); err != nil {
			return row{}, err
		}
		if match[2] != "" {
			x.Low, x.High = new(float64), new(float64)
			*x.Low, _ = strconv.ParseFloat(match[2], 64) // the expression lets nothing else through
			*x.High, _ = strconv.ParseFloat(match[3], 64)
		}
		r.Figures = append(r.Figures, x)
	}
	return r, nil
}

func cells(line string) []string {
	list := strings.Split(strings.Trim(line, "|"), "|")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}
