package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What the pages tell people to type is there. A program of the examples has a test of its own, which runs it;
// tools/release.sh runs the lines of go get.
func TestTheCommandsOfThePagesCanBeTyped(t *testing.T) {
	t.Parallel()
	makefile := read(t, "../Makefile")
	checks := map[*regexp.Regexp]func(what string) bool{
		regexp.MustCompile(`go run \./(examples/\w+)`): func(folder string) bool {
			tests, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
			return err == nil && len(tests) > 0 && isThere(folder, "main.go")
		},
		regexp.MustCompile(`go get github\.com/holdfast-go/holdfast(\S*?)[@<` + "`" + `\s]`): func(module string) bool {
			return isThere(module, "go.mod")
		},
		regexp.MustCompile(`go (?:install|run) github\.com/holdfast-go/holdfast/([\w/]+)`): func(folder string) bool {
			return isThere(folder, "main.go")
		},
		regexp.MustCompile("(?m)(?:^ {4}|`)make ([\\w-]+)"): func(target string) bool {
			return regexp.MustCompile(`(?m)^` + target + `\b.*:`).MatchString(makefile)
		},
		regexp.MustCompile(`(tools/[\w-]+\.sh)`):    func(script string) bool { return isThere(script) },
		regexp.MustCompile(`cd ([\w/-]+) && go \w`): func(folder string) bool { return isThere(folder) || folder == "shop" },
	}
	found := make(map[*regexp.Regexp]int)
	for _, page := range documents(t) {
		text := read(t, page)
		for pattern, ok := range checks {
			for _, m := range pattern.FindAllStringSubmatch(text, -1) {
				found[pattern]++
				if !ok(m[1]) {
					t.Errorf("%s: %q cannot be typed", page, strings.TrimSpace(m[0]))
				}
			}
		}
	}
	for pattern := range checks {
		if found[pattern] == 0 {
			t.Errorf("no page has %s: the pattern is wrong", pattern)
		}
	}
}

// isThere says whether the repository has a file or folder.
func isThere(parts ...string) bool {
	_, err := os.Stat(filepath.Join(slices.Concat([]string{".."}, parts)...))
	return err == nil
}
