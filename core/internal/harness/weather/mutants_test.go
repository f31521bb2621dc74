//go:build linux

package weather

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

var (
	flagMutants = flag.Bool("weather.mutants", false, "run all mutants, ten minutes; else one of them")
	flagMutant  = flag.String("weather.mutant", "", "only mutants whose name has this in it")
)

const (
	repository = "../../../.."                            // its root
	obvious    = "a grant does not look who has the name" // a mutant that no storm misses
)

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
	for _, m := range Mutants() {
		if _, _, err := patched(m); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

func TestEveryCheckerHasAMutant(t *testing.T) {
	t.Parallel()
	red := map[string]bool{"evidence": true} // of the harness itself
	for _, m := range Mutants() {
		red[m.Red] = true
	}
	for _, c := range Checkers() {
		if !red[c.Name] {
			t.Errorf("no mutant turns %s red", c.Name)
		}
	}
}

func TestEveryMutantIsCaught(t *testing.T) { //nolint:paralleltest // one storm at a time: two cores
	servers.Redis(t)
	if !*flagMutants && *flagMutant == "" {
		*flagMutant = obvious
	}
	caught, all := 0, 0
	for _, m := range Mutants() {
		if !strings.Contains(m.Name, *flagMutant) {
			continue
		}
		all++
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			if m.Test != "" {
				exam(t, m)
				caught++
				return
			}
			const storms = 4 // a fault may miss what it is for
			var found map[string][]string
			for seed := *flagSeed; seed < *flagSeed+storms && len(found[m.Red]) == 0; seed++ {
				found = storm(t, m, seed)
			}
			if len(found[m.Red]) == 0 {
				t.Fatalf("%s finds nothing in %d storms; red in the last are %v", m.Red, storms, Red(found))
			}
			caught++
			t.Logf("red: %v; %s", Red(found), found[m.Red][0])
		})
	}
	t.Logf("mutants caught %d/%d", caught, all)
}

// overlay is what the go command needs to build the mutant.
func overlay(t *testing.T, m Mutant, dir string) string {
	t.Helper()
	path, text, err := patched(m)
	if err != nil {
		t.Fatal(err)
	}
	mutated, overlay := filepath.Join(dir, filepath.Base(path)), filepath.Join(dir, "overlay.json")
	plan, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{mutated: []byte(text), overlay: plan} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// exam fails unless the mutant's test does, with the race detector as everywhere. A mutant may hang.
func exam(t *testing.T, m Mutant) {
	t.Helper()
	folder, test, _ := strings.Cut(m.Test, " ")
	binary := filepath.Join(t.TempDir(), "mutant.test")
	build := exec.Command("go", "test", "-race", "-c", "-overlay", overlay(t, m, t.TempDir()), "-o", binary, ".")
	build.Dir = filepath.Join(repository, folder)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	const storms = 4 // a fault may miss what it is for
	for seed := range uint64(storms) {
		args := []string{"-test.run", "^" + strings.ReplaceAll(test, "/", "$/^") + "$", "-test.timeout", "3m"}
		if strings.HasPrefix(test, "TestAStorm") {
			calm := seed%2 == 0 // most mutants show where there is most contention
			args = append(args, "-storm.for", "15s", "-storm.seed", strconv.FormatUint(*flagSeed+seed, 10), fmt.Sprintf("-storm.calm=%t", calm))
		} else if seed > 0 {
			break
		}
		run := exec.Command(binary, args...)
		run.Dir = build.Dir
		if out, err := run.CombinedOutput(); err != nil {
			t.Logf("red: %s: %s", m.Test, finding(out))
			return
		}
	}
	t.Fatalf("%s finds nothing", m.Test)
}

// finding is the first line of a test's output that says what it has found.
func finding(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "_test.go:") && !strings.Contains(line, " leases: ") && !strings.Contains(line, "came through") {
			return strings.TrimSpace(line)
		}
	}
	return "it ended"
}

// storm builds the mutant, runs it in its weather and returns what the checkers found.
func storm(t *testing.T, m Mutant, seed uint64) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	binary, report := filepath.Join(dir, "mutant.test"), filepath.Join(dir, "report.json")
	build := exec.Command("go", "test", "-c", "-overlay", overlay(t, m, dir), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	holders, length := *flagHolders, "8s"
	if m.Solo {
		holders = 0
	}
	if m.Long {
		length = "24s"
	}
	run := exec.Command(binary, "-weather.holders", strconv.Itoa(holders), "-test.run", "^TestWeather$", "-weather.report", report, "-weather.for", length,
		"-weather.seed", fmt.Sprint(seed), "-weather.gap", "200ms", "-weather.only", m.Only,
		"-weather.service", cmp.Or(m.Service, One), fmt.Sprintf("-weather.kinds=%t", m.Kinds),
		"-weather.alone", strconv.Itoa(max(1, m.Alone)))
	out, _ := run.CombinedOutput() // it fails if anything was found
	var found map[string][]string
	read, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(read, &found)
	}
	if err != nil {
		t.Fatalf("no report: %v\n%s", err, out)
	}
	return found
}
