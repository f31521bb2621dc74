//go:build linux

package weather

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTheGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(repository, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 13 {
		t.Fatalf("the page names %d tests: not one for each promise", len(named))
	}
	there := tests(t)
	for _, name := range named {
		if !there[name[1]] {
			t.Errorf("there is no test %s", name[1])
		}
	}
}

// Each promise says what breaks it and what proves it.
func TestEveryGuaranteeHasItsProof(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(repository, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	promised, _, _ := strings.Cut(string(page), "## Not promised")
	promises := strings.Split(promised, "\n### ")[1:]
	if len(promises) != 13 {
		t.Errorf("%d promises; want 13", len(promises))
	}
	for _, p := range promises {
		title, text, _ := strings.Cut(p, "\n")
		for _, part := range []string{"- Breaks it: ", "- Proof: `Test"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: has no %q", title, part)
			}
		}
	}
}

func TestTheGuaranteesNameEveryChecker(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(repository, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Checkers() {
		if c.Name != "evidence" && !strings.Contains(string(page), "| `"+c.Name+"` |") {
			t.Errorf("%s is not in the table", c.Name)
		}
	}
}

// tests are the names of all test functions of the repository.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	there := make(map[string]bool)
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	root := os.DirFS(repository)
	err := fs.WalkDir(root, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := fs.ReadFile(root, path)
		for _, name := range function.FindAllStringSubmatch(string(source), -1) {
			there[name[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}
