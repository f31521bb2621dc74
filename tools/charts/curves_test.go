package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func grownOnPage(t *testing.T) growth {
	t.Helper()
	g, err := parseGrowth(string(read(t, growthPage)))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestThePictureOfGrowthIsXMLAndLinkedTo(t *testing.T) {
	t.Parallel()
	picture, err := grow(grownOnPage(t))
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(strings.NewReader(string(picture))); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(string(read(t, growthPage)), growthPicture+")") {
		t.Errorf("the page does not link to %s", growthPicture)
	}
}

func TestNothingOnThePageGrowsFasterThanItMay(t *testing.T) {
	t.Parallel()
	if strings.Contains(string(read(t, growthPage)), "**more than n^") {
		t.Error("it does")
	}
	for _, s := range grownOnPage(t).Sweeps {
		if len(s.Points) < 3 || len(s.Powers) == 0 {
			t.Errorf("%s: %d points, %d lines", s.Name, len(s.Points), len(s.Powers))
		}
	}
}

func TestATableOfGrowthThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	const run = "\n## The last run\n\ngo1.26.8, redis-server 7.0.15; medians of 1 runs.\n\n"
	const table = "### Title (`held`)\n\n| leases | processes | commands/s | faults |\n|---:|---:|---:|---|\n"
	for name, page := range map[string]string{
		"no section": "# Capacity\n",
		"no tables":  run,
		"no figure":  run + table + "| 10 | 1 | many | none |\n",
		"no size":    run + table + "| few | 1 | 2 | none |\n",
		"too few":    run + table + "| 10 | 1 |\n",
	} {
		if _, err := parseGrowth(page); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	g, err := parseGrowth(run + table + "| 10 | 1 | 2.5 | none |\n| *grows as* | 1 | n^-0.50 | |\n")
	if err != nil {
		t.Fatal(err)
	}
	s := g.Sweeps[0]
	if s.What != "leases" || s.By != "processes" || s.Points[0].N != 10 || s.Points[0].Figures["commands/s"] != 2.5 || s.Powers[0].Figures["commands/s"] != -0.5 {
		t.Errorf("%+v", s)
	}
	if _, err := grow(g); err == nil {
		t.Error("curves were drawn of figures that are not there")
	}
}
