//go:build linux

package chaos

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

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

var (
	flagSeed    = flag.Uint64("chaos.seed", 1, "seed of the faults and of the workers' choices")
	flagFor     = flag.Duration("chaos.for", 4*time.Second, "how long there are faults")
	flagService = flag.String("chaos.service", strings.Join([]string{One, Postgres, MySQL, SQLite, Etcd, NATS, ZooKeeper}, ","), "where the locks are, with commas")
	flagSlack   = flag.Duration("chaos.slack", usualSlack, "how much later than its bound a call may come back; 10s with -short, where other tests run beside this one")
	flagGap     = flag.Duration("chaos.gap", 250*time.Millisecond, "time between faults")
	flagWorkers = flag.Int("chaos.workers", 4, "worker processes")
	flagOnly    = flag.String("chaos.only", "", "kinds of faults, with commas; all of them if empty")
	flagResults = flag.String("chaos.results", "", "file to which the result is added, as a line of JSON")
	flagReport  = flag.String("chaos.report", "", "file for what the checkers found, as JSON")
	flagKeep    = flag.String("chaos.keep", "", "directory for the histories of the run")
	flagJudge   = flag.String("chaos.judge", "", "directory of a run that was kept: porcupine judges it again")
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

// TestChaos is a fault run in each of some services: see the package documentation for the flags.
func TestChaos(t *testing.T) {
	t.Parallel()
	for service := range strings.SplitSeq(*flagService, ",") {
		t.Run(service, func(t *testing.T) { play(t, service) })
	}
}

func play(t *testing.T, service string) {
	t.Helper()
	var only []string
	if *flagOnly != "" {
		only = strings.Split(*flagOnly, ",")
	}
	v, faults, dir := Run(t, Plan{Seed: *flagSeed, Service: service, Workers: *flagWorkers, Length: *flagFor, Gap: *flagGap, Only: only})
	if v.slack = *flagSlack; testing.Short() {
		v.slack = max(v.slack, 10*time.Second)
	}
	found := v.Findings()
	f := v.Result()
	f.Seed, f.For, f.Red = *flagSeed, flagFor.String(), Red(found)
	for _, n := range faults {
		f.Faults += n
	}
	t.Logf("seed %d: calls %v, leases %v, faults %v", f.Seed, f.Calls, f.Leases, faults)
	t.Logf("overlaps: %d by an operator, %d by nothing; stale writes: %d into the naive store, %d into the fenced one", f.Explained, f.Overlaps, f.StaleNaive, f.Stale)
	if faults["stop"] >= 8 && f.StaleNaive == 0 && service == One {
		t.Error("the naive store has taken no stale write: the run proves nothing of the fenced one")
	}
	if f.Calls["ok"] == 0 {
		t.Error("nobody has got anything: the run proves nothing")
	}
	for _, name := range f.Red {
		for i, breach := range found[name] {
			if i == 10 {
				t.Errorf("%s: and %d more", name, len(found[name])-i)
				break
			}
			t.Errorf("%s: %s", name, breach)
		}
	}
	ok(t, addLine(*flagResults, f, true))
	ok(t, addLine(*flagReport, found, false))
	if *flagKeep != "" {
		keepRun(t, v, dir, filepath.Join(*flagKeep, service))
	}
}

// keepRun copies all that a run has left. Of what the servers did MONITOR tells the tokens, which are of no use any more.
func keepRun(t *testing.T, v *Evidence, from, to string) {
	t.Helper()
	ok(t, os.CopyFS(to, os.DirFS(from)))
	for i, l := range v.Servers {
		text, err := json.Marshal(l.Commands)
		text = bytes.ReplaceAll(text, []byte("},{"), []byte("},\n{"))
		ok(t, errors.Join(err, os.WriteFile(filepath.Join(to, fmt.Sprintf("server-%d.json", i)), text, 0o600)))
	}
}

var ok = backendtest.OK

// addLine writes a line of JSON to a file, if one is named.
func addLine(file string, what any, add bool) error {
	if file == "" {
		return nil
	}
	mode := os.O_TRUNC
	if add {
		mode = os.O_APPEND
	}
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|mode, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return errors.Join(err, out.Close())
}

func TestAKeptRunHasAnOrder(t *testing.T) {
	t.Parallel()
	dir := *flagJudge
	if dir == "" { // a short one
		dir = t.TempDir()
		run := told{id: "w1.1-1", worker: "w1.1", name: "a", fence: 7, asked: 10, answered: 20, last: 30, releasing: 40, released: 50}
		log, err := newDiary(dir, "w1.1")
		ok(t, err)
		for _, e := range run.events() {
			log.write(e)
		}
	}
	events, err := readHistories(dir)
	ok(t, err)
	var servers []*Ledger
	for i := 0; ; i++ {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("server-%d.json", i)))
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		ok(t, err)
		var commands []Command
		ok(t, json.Unmarshal(text, &commands))
		servers = append(servers, readLedger(commands))
	}
	v := newEvidence(filepath.Base(dir), events, servers)
	if breaches := checkOrder(v); len(breaches) > 0 || len(v.Holds) == 0 {
		t.Errorf("of %d leases: %q", len(v.Holds), breaches)
	}
	t.Logf("%d leases have an order", len(v.Holds))
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
