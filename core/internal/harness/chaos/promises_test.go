//go:build linux

package chaos

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

const (
	promisesMade = 13 // of docs/guarantees.md
	faultsKnown  = 52
	dash         = "-"
)

// docs/promises.tsv says what proves each promise. All that it names is there, and so is each test that a page names. No
// promise, fault, checker or mutant is without a line.
func TestTheLedgerNamesWhatExists(t *testing.T) {
	t.Parallel()
	tests, pages := repositoryTests(t)
	x := existing{tests: tests, suite: suiteCases(t), checkers: make(map[string]bool), mutants: make(map[string]Mutant)}
	missing := make(map[string]bool)
	for i := range promisesMade {
		missing["promise "+strconv.Itoa(i+1)] = true
	}
	for i := range faultsKnown {
		missing["fault "+strconv.Itoa(i+1)] = true
	}
	for _, c := range Checkers() {
		if c.Name != "evidence" { // of the harness itself
			x.checkers[c.Name], missing["checker "+c.Name], missing["a mutant that turns red "+c.Name] = true, true, true
			if !strings.Contains(pages["docs/verification.md"], "\n- `"+c.Name+"`: ") {
				t.Errorf("%s is not in the list of docs/verification.md", c.Name)
			}
		}
	}
	for _, m := range mutants(t) {
		delete(missing, "a mutant that turns red "+m.Red)
		x.mutants[m.Name], missing["mutant "+m.Name] = m, true
	}

	for i, line := range ledgerLines(t) {
		cells := strings.Split(line, "\t")
		if len(cells) != 4 || slices.Contains(cells, "") {
			t.Errorf("line %d: want four columns: %q", i, line)
			continue
		}
		if err := x.check(cells[1], cells[2], cells[3]); err != nil {
			t.Errorf("line %d, %s: %v", i, cells[0], err)
		}
		number, _, _ := strings.Cut(cells[0], " ")
		for _, proven := range []string{cells[0], "promise " + number, "checker " + cells[2], "mutant " + cells[3]} {
			delete(missing, proven)
		}
	}
	for what := range missing {
		t.Errorf("there is no line of the ledger, or no mutant: %s", what)
	}
	for name := range strings.SplitSeq(fipsCases(t), "|") {
		if !x.suite[name] {
			t.Errorf("tools/fips.sh: there is no case %s", name)
		}
	}
	for page, text := range pages {
		for _, named := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(text, -1) {
			if tests[named[1]] == nil {
				t.Errorf("%s: there is no test %s", page, named[1])
			}
		}
	}
}

// existing is what the ledger can name.
type existing struct {
	tests    map[string][]string // the folders of each
	suite    map[string]bool
	checkers map[string]bool
	mutants  map[string]Mutant
}

// check looks for what a line names.
func (x existing) check(test, checker, mutant string) error {
	folder, name, ok := strings.Cut(test, " ")
	if !ok {
		folder, name = "", test
	}
	folders := x.tests[name]
	m, isMutant := x.mutants[mutant]
	switch {
	case x.suite[test]:
	case folders == nil, folder != "" && !slices.Contains(folders, folder):
		return fmt.Errorf("there is no test %s", test)
	case folder == "" && len(folders) > 1:
		return fmt.Errorf("%s is in %v: say in which", test, folders)
	}
	switch {
	case checker != dash && (test != "TestChaos" || !x.checkers[checker]):
		return fmt.Errorf("%s has no checker %s", test, checker)
	case mutant == dash:
	case !isMutant:
		return fmt.Errorf("there is no mutant %q", mutant)
	case m.Red != "" && checker != m.Red, m.Red == "" && name != m.Test[strings.LastIndexAny(m.Test, " /")+1:]:
		return fmt.Errorf("what finds %q is %s%s", mutant, m.Red, m.Test)
	}
	return nil
}

// ledgerLines are those of docs/promises.tsv, by their numbers, without its comments and its header.
func ledgerLines(t *testing.T) map[int]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "promises.tsv"))
	backendtest.OK(t, err)
	lines := make(map[int]string)
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "promise\t") {
			lines[i+1] = line
		}
	}
	return lines
}

// fipsCases are those that tools/fips.sh runs, with bars between them: a name that is none would be left out in silence.
func fipsCases(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "tools", "fips.sh"))
	backendtest.OK(t, err)
	found := regexp.MustCompile(`(?m)^cases='(.+)'$`).FindSubmatch(text)
	if found == nil {
		t.Fatal("tools/fips.sh names no cases")
	}
	return string(found[1])
}

// repositoryTests are the folders of each test function, by its name, and the text of each page.
func repositoryTests(t *testing.T) (tests map[string][]string, pages map[string]string) {
	t.Helper()
	tests, pages = make(map[string][]string), make(map[string]string)
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	root := os.DirFS(repository)
	err := fs.WalkDir(root, ".", func(file string, _ fs.DirEntry, err error) error {
		isTest, isPage := strings.HasSuffix(file, "_test.go"), strings.HasSuffix(file, ".md") || strings.HasSuffix(file, "sources.tsv")
		if err != nil || !isTest && !isPage {
			return err
		}
		text, err := fs.ReadFile(root, file)
		if isPage {
			pages[file] = string(text)
			return err
		}
		for _, name := range function.FindAllStringSubmatch(string(text), -1) {
			if folder := path.Dir(file); !slices.Contains(tests[name[1]], folder) {
				tests[name[1]] = append(tests[name[1]], folder)
			}
		}
		return err
	})
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	return tests, pages
}

// suiteCases are those that every backend runs.
func suiteCases(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "core", "drivertest", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	named := make(map[string]bool)
	for _, file := range files {
		source, err := os.ReadFile(file)
		backendtest.OK(t, err)
		for _, name := range regexp.MustCompile(`\{name: "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
			named[name[1]] = true
		}
	}
	return named
}
