package core_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/design.md has a map of the files of this package, and the order of its mutexes.
func TestTheMapHasEveryFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "### Where everything is")
	table, _, ok := strings.Cut(rest, "### Words")
	if !ok {
		t.Fatal("docs/design.md has no map any more")
	}
	var mapped []string
	for _, name := range regexp.MustCompile("`([a-z]+\\.go)`").FindAllStringSubmatch(table, -1) {
		mapped = append(mapped, name[1])
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return name == "doc.go" || strings.HasSuffix(name, "_test.go") })
	for _, name := range files {
		if !slices.Contains(mapped, name) {
			t.Errorf("the map has no %s", name)
		}
	}
	for _, name := range mapped {
		if !slices.Contains(files, name) {
			t.Errorf("the map has %s, which is not there", name)
		}
	}
	for _, test := range regexp.MustCompile("`([a-z_]+_test)`").FindAllStringSubmatch(table, -1) {
		if _, err := os.Stat(test[1] + ".go"); err != nil {
			t.Errorf("the map names a test that is not there: %v", err)
		}
	}
}
