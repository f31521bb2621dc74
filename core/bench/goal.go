package main

import (
	"cmp"
	"math"
	"slices"
)

// goal is what a figure of Holdfast is to reach: by itself, or as a multiple of what the best
// of some others reach in the same round.
type goal struct {
	figure  string
	least   bool // the bound is a lower one; else an upper one
	bound   float64
	against []string // none: the figure itself
}

func atLeast(figure string, bound float64, against ...string) goal {
	return goal{figure, true, bound, against}
}

func atMost(figure string, bound float64, against ...string) goal {
	return goal{figure, false, bound, against}
}

// verdict is what became of a goal. Nothing fails on a goal that is missed.
type verdict struct {
	Figure  string
	Bound   float64
	AtLeast bool
	Against string `json:",omitempty"` // the best of those that it is measured against
	Reached spread
	Met     bool
}

func (g goal) judge(results []result) verdict {
	v := verdict{Figure: g.figure, Bound: g.bound, AtLeast: g.least}
	ours := results[slices.IndexFunc(results, func(r result) bool { return r.Contestant == holdfastName })]
	if len(g.against) == 0 {
		v.Reached = spreadOf(ours.values(g.figure))
	} else {
		best := g.best(results)
		v.Against = best.Contestant
		v.Reached = ratio(ours, best, g.figure)
	}
	if g.least {
		v.Met = v.Reached.Median >= v.Bound
	} else {
		v.Met = v.Reached.Median <= v.Bound
	}
	return v
}

// best is the one of those the goal is against whose median is the hardest to reach.
func (g goal) best(results []result) result {
	rivals := slices.DeleteFunc(slices.Clone(results), func(r result) bool {
		return !slices.Contains(g.against, r.Contestant)
	})
	median := func(r result) float64 {
		m := spreadOf(r.values(g.figure)).Median
		if math.IsNaN(m) && !g.least { // a rival without figures is no rival
			return math.Inf(1)
		}
		return m
	}
	order := func(a, b result) int { return cmp.Compare(median(a), median(b)) }
	if g.least {
		return slices.MaxFunc(rivals, order)
	}
	return slices.MinFunc(rivals, order)
}

// ratio is a's figure divided by b's, round by round.
func ratio(a, b result, figure string) spread {
	over, under := a.values(figure), b.values(figure)
	r := make([]float64, len(over))
	for i := range r {
		r[i] = over[i] / under[i]
	}
	return spreadOf(r)
}
