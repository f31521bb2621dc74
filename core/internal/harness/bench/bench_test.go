package bench

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

var (
	flagFigures = flag.Bool("figures", false, "measure, and print tables; without it everything runs once, and says nothing")
	flagScale   = flag.Bool("scale", false, "measure how the cost of Holdfast grows, instead of comparing it; 5 minutes")
	flagOnly    = flag.String("only", "", "comma-separated `scenarios`; default: all")
	flagRounds  = flag.Int("rounds", 0, "interleaved rounds; 5 unless told, and 1 with -scale")
	flagTime    = flag.Duration("time", 500*time.Millisecond, "length of one contestant's `round`; some scenarios take a multiple")
	flagRTT     = flag.Duration("rtt", 0, "put a `round trip` of so much between the contestants and the server; timers make more of it, and the head says how much")
	flagAgainst = flag.String("against", "", "compare Holdfast with itself: this `program` is the same, built from another commit; see tools/bench-against.sh")
)

// TestMain makes the test binary a worker where a bench wants one.
func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := work(context.Background(), os.Stdin, os.Stdout); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

// chosen are the scenarios that the flags name.
func chosen(only string, scale bool, against string) (all []scenario, err error) {
	all = comparisons()
	if scale {
		all = sweeps()
	}
	if against != "" {
		for i := range all {
			all[i].rows = contest(all[i].rows[0].size, beforeName)
		}
	}
	if only == "" {
		return all, nil
	}
	var names []string
	for name := range strings.SplitSeq(only, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	var there []string
	for _, s := range all {
		there = append(there, s.name)
	}
	for _, name := range names {
		if !slices.Contains(there, name) {
			return nil, fmt.Errorf("-only: no scenario %q; there are %s", name, strings.Join(there, ", "))
		}
	}
	return slices.DeleteFunc(all, func(s scenario) bool { return !slices.Contains(names, s.name) }), nil
}

func quickBench(t *testing.T) *bench {
	t.Helper()
	return &bench{tb: t, server: startServer(t), rounds: 1, length: 100 * time.Millisecond, quick: true}
}

func TestBench(t *testing.T) { //nolint:paralleltest // it measures
	if !*flagFigures {
		everything(t)
		return
	}
	all, err := chosen(*flagOnly, *flagScale, *flagAgainst)
	if err != nil {
		t.Fatal(err)
	}
	rounds := 5
	if *flagScale {
		rounds = 1
	}
	b := &bench{
		tb: t, server: startServer(t), rounds: cmp.Or(*flagRounds, rounds), length: *flagTime, against: *flagAgainst,
	}
	if *flagRTT > 0 {
		p := faultproxy.New(t, b.server.addr)
		p.SetDelay(*flagRTT/2, *flagRTT/2)
		b.addr = p.Addr()
	}
	b.rest()
	fmt.Printf("%s\n%s", b.where(), legend(all))
	for _, s := range all {
		results := b.race(s)
		fmt.Print(s.table(results))
		if !sound(results) {
			t.Errorf("%s: a call of Holdfast has failed: see the column of faults", s.name)
		}
	}
}

// everything runs once, with small numbers.
func everything(t *testing.T) {
	t.Helper()
	for _, s := range append(comparisons(), sweeps()...) {
		if len(s.rows) > 5 {
			s.rows = append(s.rows[:1], s.rows[len(s.rows)-1])
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			results := quickBench(t).race(s)
			table := s.table(results)
			if !sound(results) {
				t.Errorf("Holdfast is at fault:\n%s", table)
			}
			for _, r := range results {
				if r.rounds[0] == nil || !strings.Contains(table, "\n| "+r.name+" | ") || !strings.Contains(legend([]scenario{s}), "- **"+r.contestant+"**: ") {
					t.Errorf("%s has no figures, no row or no settings in\n%s", r.name, table)
				}
			}
		})
	}
}
