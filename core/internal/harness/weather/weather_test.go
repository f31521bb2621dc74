//go:build linux

package weather

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	flagSeed    = flag.Uint64("weather.seed", 1, "seed of the schedule and of the workers' choices")
	flagFor     = flag.Duration("weather.for", 5*time.Second, "how long the weather lasts")
	flagService = flag.String("weather.service", One, "where the locks are: one, plain, redlock, cluster, sentinel or replicas")
	flagKinds   = flag.Bool("weather.kinds", true, "leases of other kinds, too")
	flagGap     = flag.Duration("weather.gap", 250*time.Millisecond, "time between faults")
	flagWorkers = flag.Int("weather.workers", 4, "worker processes")
	flagHolders = flag.Int("weather.holders", 3, "goroutines of each worker that contend")
	flagAlone   = flag.Int("weather.alone", 1, "goroutines of each worker that have a name for themselves")
	flagOnly    = flag.String("weather.only", "", "kinds of faults, with commas; all of them if empty")
	flagFigures = flag.String("weather.figures", "", "file to which the figures of the run are added, as a line of JSON")
	flagReport  = flag.String("weather.report", "", "file for what the checkers found, as JSON")
	flagKeep    = flag.String("weather.keep", "", "directory for the histories of a run that fails")
)

func TestMain(m *testing.M) {
	played, err := Play()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !played {
		os.Exit(m.Run())
	}
}

// TestWeather is one run of bad weather on one redis-server: see the package documentation for the flags.
func TestWeather(t *testing.T) {
	t.Parallel()
	var only []string
	if *flagOnly != "" {
		only = strings.Split(*flagOnly, ",")
	}
	v, faults, dir := Run(t, Options{
		Plan:    Plan{Seed: *flagSeed, Service: *flagService, Workers: *flagWorkers, Length: *flagFor, Gap: *flagGap, Only: only},
		Holders: *flagHolders, Alone: *flagAlone, Kinds: *flagKinds,
	})
	begin := time.Now()
	found := v.Findings()
	f := v.Figures()
	f.Seed, f.Faults, f.Checking = *flagSeed, faults, time.Since(begin)
	t.Logf("%s, seed %d: %d calls %v", f.Service, f.Seed, len(v.Calls), f.Outcomes)
	t.Logf("%d leases %v", len(v.Holds), f.Leases)
	t.Logf("faults %v", f.Faults)
	t.Logf("overlaps: explained %v, %d not; stale writes: %d into the naive store, %d into the fenced one; two masters for %v",
		f.Explained, f.Overlaps, f.StaleNaive, f.StaleFenced, f.TwoMasters)
	t.Logf("least margin %v; %.1f commands for a grant; %d orphans, of %v at most; a loss is noticed after %v, a name is had after the heal in %v; checked in %v",
		f.LeastMargin, f.CommandsPerGrant, f.Orphans, f.LongestLife, f.Notice, f.Probe, f.Checking)
	t.Logf("hand-over %v, take-over %v, by hand-off %v; after faults %v", f.HandOff, f.TakeOver, f.PassedOn, f.Recovery)
	if faults["stop"] >= 8 && f.StaleNaive == 0 && *flagService == One {
		t.Error("the naive store has taken no stale write: the weather proves nothing of the fenced one")
	}
	if *flagFigures != "" {
		if err := addLine(*flagFigures, f); err != nil {
			t.Error(err)
		}
	}
	for _, name := range Red(found) {
		for i, breach := range found[name] {
			if i == 10 {
				t.Errorf("%s: and %d more", name, len(found[name])-i)
				break
			}
			t.Errorf("%s: %s", name, breach)
		}
	}
	if *flagReport != "" {
		text, err := json.MarshalIndent(found, "", "\t")
		if err == nil {
			err = os.WriteFile(*flagReport, text, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
	if t.Failed() && *flagKeep != "" {
		keepEvidence(t, dir, v)
	}
}

func addLine(file string, f Figures) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return errors.Join(err, out.Close())
}

// keepEvidence writes down all that a run has left. Of what the servers did MONITOR tells the
// tokens, which are of no use any more.
func keepEvidence(t *testing.T, dir string, v *Evidence) {
	t.Helper()
	for i, l := range v.Servers {
		text, err := json.Marshal(l.Commands)
		if err == nil {
			text = bytes.ReplaceAll(text, []byte("},{"), []byte("},\n{"))
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("server-%d.json", i)), text, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
	if err := os.CopyFS(*flagKeep, os.DirFS(dir)); err != nil {
		t.Error(err)
	}
}

func TestASeedMakesTheSameSchedule(t *testing.T) {
	t.Parallel()
	plan := Plan{Seed: 7, Service: One, Servers: 1, Workers: 4, Length: time.Minute, Gap: *flagGap}
	one, again := NewSchedule(plan), NewSchedule(plan)
	plan.Seed = 8
	other := NewSchedule(plan)
	if !reflect.DeepEqual(one, again) {
		t.Error("seed 7 makes two schedules")
	}
	if reflect.DeepEqual(one, other) {
		t.Error("seed 8 makes the schedule of seed 7")
	}
}

func TestNoFaultTakesTheCounterAwayOnceItIsAhead(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		ahead := false
		for _, f := range NewSchedule(Plan{Seed: seed, Service: One, Servers: 1, Workers: 4, Length: time.Minute, Gap: *flagGap}) {
			if ahead && slices.Contains(forgetful, f.Kind) {
				t.Fatalf("seed %d: %s after ahead", seed, f.Kind)
			}
			ahead = ahead || f.Kind == "ahead"
		}
	}
}
