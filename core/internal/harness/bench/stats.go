package bench

import (
	"math"
	"slices"
	"time"
)

// spread is the middle half of what several rounds have shown.
type spread struct{ Low, Median, High float64 }

// spreadOf returns quartiles: nothing is known of rounds that failed, which are NaN.
func spreadOf(v []float64) spread {
	v = slices.DeleteFunc(slices.Clone(v), func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	if len(v) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	slices.Sort(v)
	return spread{quantile(v, 0.25), quantile(v, 0.5), quantile(v, 0.75)}
}

// quantile interpolates between the two nearest of the sorted values.
func quantile(v []float64, q float64) float64 {
	at := q * float64(len(v)-1)
	i := int(at)
	if i+1 == len(v) {
		return v[i]
	}
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}

func sorted(d []time.Duration) []time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d
}

// percentile is the smallest of the sorted values that a part p of them does not exceed.
func percentile(d []time.Duration, p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[max(0, int(math.Ceil(p*float64(len(d))))-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// jain is Jain's fairness index: 1 if all got the same, 1/n if one got everything.
// R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness, DEC-TR-301, 1984.
func jain(turns []int) float64 {
	var sum, squares float64
	for _, n := range turns {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	return sum * sum / (float64(len(turns)) * squares)
}
