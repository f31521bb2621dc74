package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestEverySweepRunsAndSaysHowItGrows(t *testing.T) {
	t.Parallel()
	for _, s := range sweeps() {
		s.sizes = slices.DeleteFunc(s.sizes, func(z size) bool { return z.n > 1000 || z.by > 20 })
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var text bytes.Buffer
			sound, err := quickBench(t).showSweeps(t.Context(), []sweep{s}, false, &text)
			if err != nil {
				t.Fatal(err)
			}
			if !sound {
				t.Errorf("Holdfast is at fault:\n%s", &text)
			}
			for _, z := range s.sizes {
				row := fmt.Sprintf("\n| %d | %d | ", z.n, z.by)
				if !z.large && !strings.Contains(text.String(), row) {
					t.Errorf("no row of %d and %d in\n%s", z.n, z.by, &text)
				}
			}
			if !strings.Contains(text.String(), "\n| *grows as* |") {
				t.Errorf("nothing is said of its growth in\n%s", &text)
			}
		})
	}
}

func TestTheExponentIsThatOfThePower(t *testing.T) {
	t.Parallel()
	for _, k := range []float64{-0.5, 0, 1, 1.7} {
		var x, y []float64
		for _, n := range []float64{10, 100, 1000, 10_000} {
			x, y = append(x, n), append(y, 3*math.Pow(n, k))
		}
		if got := exponent(x, y); math.Abs(got-k) > 1e-9 {
			t.Errorf("%v, want %v", got, k)
		}
		x, y = append(x, 1e5), append(y, 0) // nothing was measured there
		if got := exponent(x, y); math.Abs(got-k) > 1e-9 {
			t.Errorf("%v, want %v", got, k)
		}
	}
	if got := exponent([]float64{1, 10}, []float64{1, 10}); !math.IsNaN(got) {
		t.Errorf("two points are no curve, and not %v", got)
	}
}

func TestWhatGrowsFasterThanItMayIsSaid(t *testing.T) {
	t.Parallel()
	c := growing{power: 1.1}
	for power, want := range map[float64]string{0.9: "n^0.90", 2: "n^2.00, **more than n^1.1**"} {
		if got := c.grows(power); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
