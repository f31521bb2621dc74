package bench

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestTheTableSaysRatiosOfEachRoundAndWhatIsNoNumber(t *testing.T) {
	t.Parallel()
	s := scenario{name: "s", title: "T", columns: []column{{title: "apples/s", format: "%.0f"}, {title: "pears", format: "%.1f"}}}
	none := math.NaN()
	table := s.table([]result{
		{row{name: holdfastName}, [][]float64{{10, none}, {10, none}}, faults{}},
		{row{name: "other"}, [][]float64{{5, none}, {20, 3}}, faults{Failed: 1, Note: "so\nwhat"}},
		{row{name: "dead"}, [][]float64{nil, nil}, faults{Failed: 2, Note: "why"}},
	})
	for _, want := range []string{
		"| Holdfast | 10 | – | none |",
		"| other | 12 (9–16) | 3.0 | 1 calls failed, so what |",
		"| dead | – | – | 2 calls failed, why |",
		"| Holdfast ÷ other | 1.25 (0.875–1.62) | – |  |",
		"| Holdfast ÷ dead | – | – |  |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		turns []int
		want  float64
	}{{[]int{5, 5, 5, 5}, 1}, {[]int{9, 0, 0, 0}, 0.25}, {[]int{1, 3}, 0.8}} {
		if got := jain(c.turns); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("fairness of %v: %v, want %v", c.turns, got, c.want)
		}
	}
	d := make([]time.Duration, 0, 100)
	for i := range 100 {
		d = append(d, time.Duration(100-i))
	}
	d = sorted(d)
	for p, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 0.999: 100, 1: 100} {
		if got := percentile(d, p); got != want {
			t.Errorf("percentile %v: %d, want %d", p, got, want)
		}
	}
	if got := percentile(nil, 0.5); got != 0 {
		t.Errorf("percentile of nothing: %d", got)
	}
	if got := spreadOf([]float64{math.NaN(), 4, 2, math.Inf(1), 3, 1, 5}); got != (spread{2, 3, 4}) { // rounds that failed are left out
		t.Error(got)
	}
	if got := spreadOf([]float64{math.NaN()}); !math.IsNaN(got.Median) {
		t.Error(got)
	}
}
