package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const page = "# Backends\n\n" + begin + end + "\n\nMore.\n"

const redis = `{"backend": "Redis", "server": "Redis 7.0", "cases": [
	{"promise": "exclusion", "case": "A", "outcome": "passed"},
	{"promise": "exclusion", "case": "B", "outcome": "passed"},
	{"promise": "line", "case": "C", "outcome": "lacks", "reason": "no line"},
	{"promise": "line", "case": "D", "outcome": "passed"},
	{"promise": "outage", "case": "E", "outcome": "not run", "reason": "no servers"}
]}`

const memory = `{"backend": "memory", "server": "the process", "cases": [
	{"promise": "exclusion", "case": "A", "outcome": "failed"},
	{"promise": "exclusion", "case": "B", "outcome": "passed"},
	{"promise": "line", "case": "C", "outcome": "lacks", "reason": "no line"},
	{"promise": "outage", "case": "E", "outcome": "no server", "reason": "none"}
]}`

// written is a folder with records, and a document.
func written(t *testing.T, text string, records ...string) (folder, doc string) {
	t.Helper()
	folder, doc = t.TempDir(), filepath.Join(t.TempDir(), "doc.md")
	write(t, doc, text)
	for i, r := range records {
		write(t, filepath.Join(folder, string(rune('a'+i))+".json"), r)
	}
	return folder, doc
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func rows(t *testing.T, doc string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(doc)
	ok(t, err)
	if !strings.HasPrefix(string(text), "# Backends\n\n") || !strings.HasSuffix(string(text), end+"\n\nMore.\n") {
		t.Errorf("what is around the table has changed:\n%s", text)
	}
	rows := make(map[string][]string)
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); len(cells) > 1 {
			rows[strings.TrimPrefix(cells[0], "| ")] = cells[1:]
		}
	}
	return rows
}

func TestTheTableSaysWhatTheRunsHaveShown(t *testing.T) {
	t.Parallel()
	folder, doc := written(t, page, redis, memory)
	ok(t, run(folder, doc, false))
	got := rows(t, doc)
	for row, want := range map[string][]string{
		"server":    {"the process", "Redis 7.0", "not run"},
		"exclusion": {"**no** (1 of 2 failed)", "yes (2)", "not run"},
		"line":      {"lacks", "yes (1 of 2)", "not run"},
		"outage":    {"no server", "not run", "not run"},
	} {
		for i, cell := range want {
			if len(got[row]) != len(backends) || got[row][i] != cell {
				t.Errorf("%s: %q; want %q", row, got[row], want)
			}
		}
	}
	ok(t, run(folder, doc, true))
}

func TestATableThatIsNotWhatWasShownIsStale(t *testing.T) {
	t.Parallel()
	mine, doc := written(t, page, redis)
	ok(t, run(mine, doc, false))
	for change, records := range map[string][]string{
		"a case more":       {strings.Replace(redis, `"cases": [`, `"cases": [{"promise": "exclusion", "case": "X", "outcome": "passed"},`, 1)},
		"a case that fails": {strings.Replace(redis, `"B", "outcome": "passed"`, `"B", "outcome": "failed"`, 1)},
		"a case that runs":  {strings.Replace(redis, "not run", "passed", 1)},
		"another backend":   {redis, memory},
		"none":              {memory},
	} {
		folder, _ := written(t, "", records...)
		if err := run(folder, doc, true); err == nil || !strings.Contains(err.Error(), "make evidence") {
			t.Errorf("%s: %v", change, err)
		}
	}
}

func TestTheVersionsOfServersAreNotCompared(t *testing.T) {
	t.Parallel()
	mine, doc := written(t, page, redis)
	ok(t, run(mine, doc, false))
	folder, _ := written(t, "", strings.Replace(redis, "Redis 7.0", "Redis 8.2", 1))
	ok(t, run(folder, doc, true))
}

func TestACheckChangesNothing(t *testing.T) {
	t.Parallel()
	folder, doc := written(t, page, redis)
	if err := run(folder, doc, true); err == nil {
		t.Error("an empty table is not stale")
	}
	if text, err := os.ReadFile(doc); err != nil || string(text) != page {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWhatIsNoEvidenceIsRefused(t *testing.T) {
	t.Parallel()
	for what, in := range map[string]struct {
		page    string
		records []string
	}{
		"no records":         {page, nil},
		"no JSON":            {page, []string{"yes"}},
		"an unknown field":   {page, []string{strings.Replace(redis, `"server"`, `"host": "", "server"`, 1)}},
		"an unknown backend": {page, []string{strings.Replace(redis, `"Redis"`, `"Redes"`, 1)}},
		"an unknown outcome": {page, []string{strings.Replace(redis, `"passed"`, `"yes"`, 1)}},
		"no promise":         {page, []string{strings.Replace(redis, `"line"`, `""`, 1)}},
		"no cases":           {page, []string{`{"backend": "Redis", "server": "Redis 7.0", "cases": []}`}},
		"one backend twice":  {page, []string{redis, redis}},
		"no place":           {"# Backends\n", []string{redis}},
		"no end of it":       {"# Backends\n" + begin, []string{redis}},
	} {
		folder, doc := written(t, in.page, in.records...)
		for _, check := range []bool{false, true} {
			if err := run(folder, doc, check); err == nil || strings.Contains(err.Error(), "is not what this run has shown") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if text, err := os.ReadFile(doc); err != nil || string(text) != in.page {
			t.Errorf("%s: %q, %v", what, text, err)
		}
	}
}
