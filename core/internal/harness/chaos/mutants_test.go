//go:build linux

package chaos

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

var flagMutants = flag.String("chaos.mutants", "a grant does not look who has the name", `mutants whose name has this in it; "all"`)

const repository = "../../../.." // its root

// Mutant is a patch that breaks one promise: see mutants.txt.
type Mutant struct {
	Name, File, Old, New string
	Test, Red            string // what must find it: a test, or a checker
	Only, Service, Race  string
}

//go:embed mutants.txt
var mutantsText string

// mutants are all of mutants.txt.
func mutants(t *testing.T) (all []Mutant) {
	t.Helper()
	for record := range strings.SplitSeq(strings.TrimSuffix(mutantsText, "\n"), "\n\n") {
		var m Mutant
		fields := map[string]*string{
			"mutant": &m.Name, "file": &m.File, "test": &m.Test, "checker": &m.Red, "faults": &m.Only, "service": &m.Service, "race": &m.Race,
		}
		var before, after []string
		for line := range strings.SplitSeq(record, "\n") {
			key, value, _ := strings.Cut(line, " ")
			field := fields[key]
			switch {
			case line[0] == '#':
			case line[0] == '-':
				before = append(before, line[1:])
			case line[0] == '+':
				after = append(after, line[1:])
			case field == nil || *field != "":
				t.Errorf("%s: %q", m.Name, line)
			default:
				*field = strings.TrimSpace(value)
			}
		}
		m.Old, m.New = strings.Join(before, "\n"), strings.Join(after, "\n")
		if m.Name == "" && before == nil {
			continue // a comment
		}
		all = append(all, m)
	}
	return all
}

// patched is what becomes of the mutant's file.
func patched(m Mutant) (path, text string, err error) {
	path, err = filepath.Abs(filepath.Join(repository, m.File))
	if err != nil {
		return "", "", err
	}
	files := []string{path}
	if strings.HasSuffix(m.File, "/") {
		if files, err = filepath.Glob(filepath.Join(path, "*.go")); err != nil {
			return "", "", err
		}
	}
	found := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return "", "", err
		}
		if n := strings.Count(string(source), m.Old); n > 0 && !strings.HasSuffix(file, "_test.go") {
			found += n
			path, text = file, strings.Replace(string(source), m.Old, m.New, 1)
		}
	}
	if found != 1 {
		return "", "", fmt.Errorf("what it replaces is %d times in %s; want once", found, m.File)
	}
	return path, text, nil
}

func TestEveryMutantStillApplies(t *testing.T) {
	t.Parallel()
	for _, m := range mutants(t) {
		if _, _, err := patched(m); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if (m.Test == "") == (m.Red == "") {
			t.Errorf("%s: is to be found by a test or by a checker", m.Name)
		}
	}
}

// Those that a test finds go two at a time, once the fault runs are over.
func TestEveryMutantIsCaught(t *testing.T) { //nolint:paralleltest // one fault run at a time: two cores
	servers.Redis(t)
	for _, m := range mutants(t) {
		if *flagMutants != "all" && !strings.Contains(m.Name, *flagMutants) {
			continue
		}
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			if m.Test != "" {
				t.Parallel()
			}
			dir := t.TempDir()
			folder, test, _ := strings.Cut(cmp.Or(m.Test, "core/internal/harness/chaos TestChaos"), " ")
			binary := build(t, m, dir, filepath.Join(repository, folder))
			const most = 4 // a fault, or an instant of chance, may miss what it is for
			if m.Test != "" {
				for range most {
					run := exec.Command(binary, "-test.failfast", "-test.run", "^"+strings.ReplaceAll(test, "/", "$/^")+"$", "-test.timeout", "3m", "-test.v")
					run.Dir = filepath.Join(repository, folder)
					out, err := run.CombinedOutput() // a mutant may hang
					if !strings.Contains(string(out), "=== RUN   "+test) {
						t.Fatalf("there is no %s\n%s", m.Test, out)
					}
					if err != nil {
						return
					}
				}
				t.Fatalf("%s finds nothing", m.Test)
			}
			var found map[string][]string
			for seed := *flagSeed; seed < *flagSeed+most && len(found[m.Red]) == 0; seed++ {
				found = chaos(t, m, binary, dir, seed)
			}
			if len(found[m.Red]) == 0 {
				t.Fatalf("%s finds nothing in %d runs; red in the last are %v", m.Red, most, Red(found))
			}
			t.Logf("red: %v; %s", Red(found), found[m.Red][0])
		})
	}
}

// build makes the test binary of a folder with the mutant in it.
func build(t *testing.T, m Mutant, dir, folder string) (binary string) {
	t.Helper()
	path, text, err := patched(m)
	ok(t, err)
	mutated, overlay := filepath.Join(dir, filepath.Base(path)), filepath.Join(dir, "overlay.json")
	ok(t, os.WriteFile(mutated, []byte(text), 0o600))
	ok(t, addLine(overlay, map[string]map[string]string{"Replace": {path: mutated}}, false))
	binary = filepath.Join(dir, "mutant.test")
	cmd := exec.Command("go", "test", "-c", "-race="+cmp.Or(m.Race, "false"), "-vet=off", "-overlay", overlay, "-o", binary, ".")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// chaos runs the mutant among its faults and returns what the checkers found.
func chaos(t *testing.T, m Mutant, binary, dir string, seed uint64) (found map[string][]string) {
	t.Helper()
	report := filepath.Join(dir, "report.json")
	run := exec.Command(binary, "-test.run", "^TestChaos$", "-chaos.report", report, "-chaos.for", "8s",
		"-chaos.seed", fmt.Sprint(seed), "-chaos.gap", "200ms", "-chaos.only", m.Only, "-chaos.service", cmp.Or(m.Service, One))
	out, _ := run.CombinedOutput() // it fails if anything was found
	read, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(read, &found)
	}
	if err != nil {
		t.Fatalf("no report: %v\n%s", err, out)
	}
	return found
}
