//go:build linux

package weather

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const faultsKnown = 52

// Every fault that the library was written against has a test that exists.
func TestEveryFaultHasATest(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(repository, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Faults and their tests")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| [^|]+ \| ([^|]+) \|$`).FindAllStringSubmatch(table, -1)
	there := tests(t)
	suite := cases(t)
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			t.Fatalf("row %d is of fault %s", i+1, row[1])
		}
		named := regexp.MustCompile("`([A-Za-z0-9]+)`").FindAllStringSubmatch(row[2], -1)
		if len(named) == 0 {
			t.Errorf("fault %s has no test", row[1])
		}
		for _, name := range named {
			if !there[name[1]] && !suite[name[1]] {
				t.Errorf("fault %s: there is no %s", row[1], name[1])
			}
		}
	}
	if len(rows) != faultsKnown {
		t.Errorf("%d faults; want %d", len(rows), faultsKnown)
	}
}

// cases are those of the suite that every backend runs.
func cases(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "core", "drivertest", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	named := make(map[string]bool)
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\{name: "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
			named[name[1]] = true
		}
	}
	return named
}
