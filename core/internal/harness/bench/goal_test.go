package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

// rounds are results of one figure, and Jain indices.
func rounds(name string, jain float64, values ...float64) result {
	r := result{Contestant: name}
	for _, v := range values {
		r.Rounds = append(r.Rounds, map[string]float64{"x": v, "jain": jain})
	}
	return r
}

func TestAGoalIsMeasuredAgainstTheRivalThatIsHardestToReach(t *testing.T) {
	t.Parallel()
	dead := result{Contestant: "dead", Rounds: []map[string]float64{nil, nil, nil}}
	results := []result{
		rounds(holdfastName, 1, 10, 20, 90),
		rounds("slow", 1, 1, 2, 9),
		rounds("unfair", 0.1, 10, 10, 10),
		rounds("fast", 1, 5, 5, 5),
		dead,
	}
	rivals := []string{"slow", "unfair", "fast", "dead"}
	for _, c := range []struct {
		goal    goal
		against string
		reached float64
		met     bool
	}{
		{atLeast("x", 20), "", 20, true},
		{atLeast("x", 20.1), "", 20, false},
		{atMost("x", 20), "", 20, true},
		{atMost("x", 19.9), "", 20, false},
		{atLeast("x", 2, rivals...), "unfair", 2, true},
		{atLeast("x", 2, rivals...).ofFair(), "fast", 4, true},
		{atMost("x", 2, rivals...), "slow", 10, false},
		{atMost("x", 10, "slow"), "slow", 10, true},
		{atLeast("x", 1, "dead"), "", math.NaN(), false},
		{atLeast("y", 1), "", math.NaN(), false},
		{atMost("y", 1), "", math.NaN(), false},
	} {
		v := c.goal.judge(results)
		same := v.Reached.Median == c.reached || math.IsNaN(v.Reached.Median) && math.IsNaN(c.reached)
		if v.Against != c.against || v.Met != c.met || !same {
			t.Errorf("%+v: %+v", c.goal, v)
		}
	}
}

func TestTheTableSaysGoalsInWordsAndWhatIsNoNumber(t *testing.T) {
	t.Parallel()
	s := scenario{name: "s", title: "T", columns: []column{{"x", "apples/s", "%.0f"}, {"y", "pears", "%.1f"}}}
	results := []result{rounds(holdfastName, 1, 10, 10), rounds("other", 1, 5, 20)}
	results[1].Faults = faults{Overlaps: 2, Left: 1, Note: "so\nwhat"}
	g := atLeast("x", 0.5, "other")
	o := outcome{scenario: s, Results: results, Goals: []verdict{g.judge(results), g.ofFair().judge(results), atMost("y", 3).judge(results)}}
	table := o.table()
	for _, want := range []string{
		"| Holdfast | 10 (10–10) | 1 (1–1) | – | none |",
		"| other | 12 (9–16) | 1.25 (0.875–1.62) | – | 2 overlaps, 1 keys left behind, so what |",
		"| apples/s ≥ 0.5 × other | 1.25 (0.875–1.62) | met |",
		"| apples/s ≥ 0.5 × other, the best with Jain ≥ 0.5 | 1.25 (0.875–1.62) | met |",
		"| pears ≤ 3 | – | not met |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
}

func TestFairnessIsOneForEqualsAndOneOfNForASingleWinner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		turns []int
		want  float64
	}{{[]int{5, 5, 5, 5}, 1}, {[]int{9, 0, 0, 0}, 0.25}, {[]int{1, 3}, 0.8}} {
		if got := jain(c.turns); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c.turns, got, c.want)
		}
	}
}

func TestPercentilesAreValuesThatOccurred(t *testing.T) {
	t.Parallel()
	d := make([]time.Duration, 0, 100)
	for i := range 100 {
		d = append(d, time.Duration(100-i))
	}
	d = sorted(d)
	for p, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 0.999: 100, 1: 100} {
		if got := percentile(d, p); got != want {
			t.Errorf("%v: %d, want %d", p, got, want)
		}
	}
	if got := percentile(nil, 0.5); got != 0 {
		t.Error(got)
	}
}

func TestASpreadLeavesOutRoundsThatFailed(t *testing.T) {
	t.Parallel()
	if got := spreadOf([]float64{math.NaN(), 4, 2, math.Inf(1), 3, 1, 5}); got != (spread{2, 3, 4}) {
		t.Error(got)
	}
	if got := spreadOf([]float64{math.NaN()}); !math.IsNaN(got.Median) {
		t.Error(got)
	}
}
