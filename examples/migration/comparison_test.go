package migration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// modules are what sources.tsv cites, by how it calls them.
var modules = map[string]string{
	"redsync/v4@v4.18.1":    "github.com/go-redsync/redsync/v4",
	"bsm/redislock@v0.10.0": "github.com/bsm/redislock",
	"rueidis@v1.0.79":       "github.com/redis/rueidis",
	"asynq@v0.26.0":         "github.com/hibiken/asynq",
}

var cited = regexp.MustCompile("(\\S+@v[0-9.]+) (\\S+\\.(?:go|lua)):(\\d+) `([^`]+)`")

func TestComparisonQuotesWhatStandsInTheSources(t *testing.T) {
	t.Parallel()
	dirs := make(map[string]string)
	for name, path := range modules {
		list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", path)
		list.Env = append(os.Environ(), "GOWORK=off") // the workspace may have newer ones
		out, err := list.Output()
		version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		if err != nil || !strings.HasSuffix(name, "@"+version) {
			t.Fatalf("%s: %q, %v", name, out, err)
		}
		dirs[name] = dir
	}
	citations := cited.FindAllStringSubmatch(page(t, sources), -1)
	if len(citations) < 30 {
		t.Errorf("only %d citations", len(citations))
	}
	for _, c := range citations {
		text, err := os.ReadFile(filepath.Join(dirs[c[1]], c[2]))
		if dirs[c[1]] == "" || err != nil {
			t.Errorf("%s: %v", c[0], err)
			continue
		}
		lines := strings.Split(string(text), "\n")
		if n, _ := strconv.Atoi(c[3]); n > len(lines) || !strings.Contains(lines[n-1], c[4]) {
			t.Errorf("%s: it stands not there", c[0])
		}
	}
}

// sources has a line for each cell of the page's table: row, library, answer and where it stands.
const sources = "examples/migration/sources.tsv"

func TestComparisonHasASourceForEachCell(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(page(t, "docs/comparison.md"), "\n| | ")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split("| | "+table, "\n")
	libraries := cells(rows[0])[1:]
	if len(libraries) != 6 || len(rows) < 12 {
		t.Fatalf("the table: %q", rows)
	}
	var want []string
	for _, row := range rows[2:] {
		answers := cells(row)
		for i, library := range libraries {
			want = append(want, answers[0]+"\t"+library+"\t"+answers[i+1])
		}
	}
	lines := strings.Split(strings.TrimSpace(page(t, sources)), "\n")[1:]
	if len(lines) != len(want) {
		t.Fatalf("%d cells, %d sources", len(want), len(lines))
	}
	for i, line := range lines {
		if source, found := strings.CutPrefix(line, want[i]+"\t"); !found || source == "" {
			t.Errorf("the table says %q, and the sources %q", want[i], line)
		}
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	ok(t, err)
	return string(text)
}

// cells are those of a table's row.
func cells(row string) []string {
	list := strings.Split(strings.Trim(row, "|"), "|")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}
