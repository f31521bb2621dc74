package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A test is one test function in a test binary.
type test struct {
	dir, name string
	took      time.Duration
}

// A bench is where instrumented tests are built and run.
type bench struct {
	root, temp string
	light      time.Duration // tests that take longer judge nothing
	tests      []*test
	leftOut    int // tests that fail without a mutant
}

// overlay writes what the packages in dirs look like with switches, and returns their mutants.
func (b *bench) overlay(dirs []string) ([]*change, error) {
	var changes []*change
	replace := map[string]string{}
	put := func(path string, text []byte) error {
		to := filepath.Join(b.temp, strings.ReplaceAll(path, "/", "+"))
		replace[filepath.Join(b.root, path)] = to
		return os.WriteFile(to, text, 0o600)
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(b.root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			path, err := filepath.Rel(b.root, f)
			if err != nil {
				return nil, err
			}
			text, err := instrument(b.root, path, &changes)
			if err != nil {
				return nil, err
			}
			if err := put(path, text); err != nil {
				return nil, err
			}
		}
	}
	if err := put("internal/mutant/mutant.go", switchSource); err != nil {
		return nil, err
	}
	listed, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	return changes, os.WriteFile(filepath.Join(b.temp, "overlay.json"), listed, 0o600)
}

func (b *bench) binary(dir string) string {
	return filepath.Join(b.temp, strings.ReplaceAll(dir, "/", "+")+".test")
}

// build compiles a package's tests and lists them.
func (b *bench) build(ctx context.Context, dir string) error {
	//nolint:gosec // G204: our own tests
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-race="+strconv.FormatBool(raced(dir)),
		"-overlay", filepath.Join(b.temp, "overlay.json"), "-o", b.binary(dir), ".")
	build.Dir, build.Stderr = filepath.Join(b.root, dir), os.Stderr
	build.Env = append(os.Environ(), "GOWORK=off")
	if err := build.Run(); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if _, err := os.Stat(b.binary(dir)); err != nil {
		return nil //nolint:nilerr // no tests
	}
	out, ok := b.run(ctx, dir, "-test.list=^(Test|Example|Fuzz)", nil, time.Minute)
	if !ok {
		return fmt.Errorf("%s: %s", dir, out)
	}
	for name := range strings.FieldsSeq(out) {
		b.tests = append(b.tests, &test{dir: dir, name: name})
	}
	return nil
}

// raced says that a package has code for builds with the race detector.
func raced(dir string) bool { return dir == "core/internal/callctx" }

// run runs a binary in its folder, within a limit of time and memory: a loop that does not end may allocate.
func (b *bench) run(ctx context.Context, dir, arg string, env []string, limit time.Duration) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	memory := "4000000"
	if raced(dir) { // the detector maps far more than it uses
		memory = "unlimited"
	}
	//nolint:gosec // G204: our own tests
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -v "$0"; exec nice -n 10 "$@"`, memory, b.binary(dir), "-test.failfast", arg)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = filepath.Join(b.root, dir), &out, &out, time.Second
	cmd.Env = append(os.Environ(), env...)
	err := cmd.Run()
	return out.String(), err == nil
}

// reach runs every test alone, and notes which mutants make a difference in it.
func (b *bench) reach(ctx context.Context, changes []*change) error {
	var mu sync.Mutex
	var failed []string
	twoAtATime(b.tests, func(t *test) {
		file := filepath.Join(b.temp, strings.ReplaceAll(t.dir, "/", "+")+"."+t.name+".reached")
		began := time.Now()
		out, ok := b.run(ctx, t.dir, "-test.run=^"+t.name+"$", []string{"MUTANT_REACHED=" + file}, 5*time.Minute)
		t.took = time.Since(began)
		numbers, _ := os.ReadFile(file) //nolint:gosec // a test may reach none; G304: our own file
		mu.Lock()
		defer mu.Unlock()
		if !ok {
			failed = append(failed, t.dir+" "+t.name+"\n"+out)
		}
		for f := range strings.FieldsSeq(string(numbers)) {
			if n, err := strconv.Atoi(f); err == nil && ok && t.took < b.light {
				changes[n-1].reachedBy = append(changes[n-1].reachedBy, t)
			}
		}
	})
	if len(failed) > 0 {
		fmt.Fprintf(os.Stderr, "without a mutant, these fail and are left out:\n%s\n", strings.Join(failed, "\n"))
	}
	b.leftOut = len(failed)
	return ctx.Err()
}

// try runs the tests that a mutant makes a difference in, the fastest first, until one fails.
func (b *bench) try(ctx context.Context, c *change) {
	if len(c.reachedBy) == 0 {
		c.result = "not reached"
		return
	}
	slices.SortFunc(c.reachedBy, func(x, y *test) int { return cmp.Compare(x.took, y.took) })
	c.result = "survived"
	for rest, size := c.reachedBy, 8; len(rest) > 0 && c.result == "survived"; size *= 8 {
		some := rest[:min(size, len(rest))]
		rest = rest[len(some):]
		byDir := map[string][]*test{}
		for _, t := range some {
			byDir[t.dir] = append(byDir[t.dir], t)
		}
		for dir, tests := range byDir {
			if c.result != "survived" {
				break
			}
			limit := 15 * time.Second
			var names []string
			for _, t := range tests {
				limit += 5 * t.took
				names = append(names, t.name)
			}
			out, ok := b.run(ctx, dir, "-test.run=^("+strings.Join(names, "|")+")$", []string{"MUTANT=" + strconv.Itoa(c.number)}, limit)
			if !ok {
				c.result, c.killer = killer(out)
			}
		}
	}
}

// killer is the test whose failure an output tells of, or the panic that has ended the run. Without one the limit of time or memory has:
// most mutants that do this hang, but on a busy machine others may.
func killer(out string) (result, test string) {
	for line := range strings.Lines(out) {
		if _, after, ok := strings.Cut(line, "--- FAIL: "); ok {
			return "killed", strings.Fields(after)[0]
		}
		if strings.HasPrefix(line, "panic: ") {
			return "killed", strings.TrimSpace(line)
		}
	}
	return "hung", ""
}

func twoAtATime[T any](list []T, f func(T)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, 2)
	for _, x := range list {
		slots <- struct{}{}
		all.Go(func() { f(x); <-slots })
	}
	all.Wait()
}
