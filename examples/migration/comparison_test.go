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

// modules are what docs/comparison.md cites, by how it calls them.
var modules = map[string]string{
	"redsync/v4@v4.18.1":   "github.com/go-redsync/redsync/v4",
	"bsm/redislock@v0.9.4": "github.com/bsm/redislock",
	"rueidis@v1.0.79":      "github.com/redis/rueidis",
	"asynq@v0.26.0":        "github.com/hibiken/asynq",
}

var cited = regexp.MustCompile("(\\S+@v[0-9.]+) (\\S+\\.go):(\\d+) `([^`]+)`")

func TestComparisonQuotesWhatStandsInTheSources(t *testing.T) {
	t.Parallel()
	dirs := make(map[string]string)
	for name, path := range modules {
		list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", path)
		list.Env = append(os.Environ(), "GOWORK=off") // the workspace has newer ones
		out, err := list.Output()
		version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		if err != nil || !strings.HasSuffix(name, "@"+version) {
			t.Fatalf("%s: %q, %v", name, out, err)
		}
		dirs[name] = dir
	}
	citations := cited.FindAllStringSubmatch(page(t, "docs/comparison.md"), -1)
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

func TestComparisonHasASourceForEachCellOfTheReadme(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(page(t, "README.md"), "\n## Comparison\n\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	libraries := cells(rows[0])[1:]
	if len(libraries) != 6 || len(rows) < 10 {
		t.Fatalf("the README's table: %q", rows)
	}
	for _, row := range rows[2:] {
		answers := cells(row)
		_, section, found := strings.Cut(page(t, "docs/comparison.md"), "\n## "+answers[0]+"\n")
		if !found {
			t.Errorf("no section %q", answers[0])
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for i, library := range libraries {
			if !strings.Contains(section, "\n| "+library+" | "+answers[i+1]+" | ") {
				t.Errorf("%s, %s: the README says %q, the page does not", answers[0], library, answers[i+1])
			}
		}
	}
}

// root is the repository.
func root(t *testing.T) *os.Root {
	t.Helper()
	dir, err := os.OpenRoot("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := root(t).ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
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
