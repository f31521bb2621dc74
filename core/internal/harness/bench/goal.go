package main

import (
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
	fair    float64  // least Jain index of a rival
}

func atLeast(figure string, bound float64, against ...string) goal {
	return goal{figure: figure, least: true, bound: bound, against: against}
}

func atMost(figure string, bound float64, against ...string) goal {
	return goal{figure: figure, bound: bound, against: against}
}

// fair is the Jain index below which a contestant starves most of its waiters.
const fair = 0.5

// ofFair is the goal against those who let all waiters have their turns, more or less: one
// who goes on and on, while the others sleep, is as fast as without any contention.
func (g goal) ofFair() goal {
	g.fair = fair
	return g
}

// verdict is what became of a goal. Nothing fails on a goal that is missed.
type verdict struct {
	Figure  string
	Bound   float64
	AtLeast bool
	Against string  // the best of those that it is measured against
	Fair    float64 // least Jain index of those
	Reached spread
	Met     bool
}

func (g goal) judge(results []result) verdict {
	v := verdict{Figure: g.figure, Bound: g.bound, AtLeast: g.least, Fair: g.fair}
	ours := results[slices.IndexFunc(results, func(r result) bool { return r.Contestant == holdfastName })]
	if len(g.against) == 0 {
		v.Reached = spreadOf(ours.values(g.figure))
	} else {
		best, ok := g.best(results)
		if !ok {
			v.Reached = spreadOf(nil)
			return v
		}
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
func (g goal) best(results []result) (best result, ok bool) {
	hardest := math.NaN()
	for _, r := range results {
		if !slices.Contains(g.against, r.Contestant) || spreadOf(r.values("jain")).Median < g.fair {
			continue
		}
		m := spreadOf(r.values(g.figure)).Median
		if math.IsNaN(m) {
			continue // a rival without figures is no rival
		}
		if !ok || g.least == (m > hardest) {
			best, hardest, ok = r, m, true
		}
	}
	return best, ok
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
