package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// shrunk is the scenario without what it can break its promise without, as far as fails says: callers, what they do and how they
// come, and faults.
func (p *scenario) shrunk(fails func(*scenario) bool) *scenario {
	small := *p
	try := func(change func(q *scenario)) bool {
		q := small
		change(&q)
		if !fails(&q) {
			return false
		}
		small = q
		return true
	}
	fewer(small.jobs, func(jobs []*job) bool { return try(func(q *scenario) { q.jobs = jobs }) })
	fewer(small.spells, func(spells []spell) bool { return try(func(q *scenario) { q.spells = spells }) })
	try(func(q *scenario) { q.closes, q.drains = 0, false })
	for i := range small.jobs {
		with := func(change func(e *job)) bool {
			e := *small.jobs[i]
			change(&e)
			return try(func(q *scenario) { q.jobs = slices.Clone(q.jobs); q.jobs[i] = &e })
		}
		fewer(small.jobs[i].steps, func(steps []string) bool { return with(func(e *job) { e.steps = steps }) })
		for _, plain := range []func(e *job){
			func(e *job) { e.kind, e.local = exclusive, false },
			func(e *job) { e.way = acquire },
			func(e *job) { e.names = e.names[:1] },
			func(e *job) { e.handoff = "" },
			func(e *job) { e.ending = release },
			func(e *job) { e.bound = renewed },
			func(e *job) { e.leave = never },
			func(e *job) { e.wait = core.WaitForever },
			func(e *job) { e.label, e.deaf, e.ttl, e.hold = "", false, 0, 0 },
		} {
			with(plain)
		}
	}
	return &small
}

// fewer leaves out what it can of all, many at a time and then one by one, as long as it still fails without them.
func fewer[T any](all []T, fails func([]T) bool) {
	for n := len(all); n > 0; n /= 2 {
		for i := 0; i < len(all); {
			if rest := slices.Concat(all[:i], all[min(i+n, len(all)):]); fails(rest) {
				all = rest
			} else {
				i += n
			}
		}
	}
}

func TestAScenarioShrinksToWhatBreaksThePromise(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		whole := draw(seed)
		whole.spells = append(whole.spells, spell{process: 1, at: time.Hour})
		whole.jobs = append(whole.jobs, &job{number: 1000, names: []string{"a"}, kind: reader, way: try, steps: []string{nest, rob, confirm}})
		small := whole.shrunk(func(q *scenario) bool { // it needs these three
			late := slices.ContainsFunc(q.spells, func(s spell) bool { return s.at == time.Hour })
			return late && slices.ContainsFunc(q.jobs, func(e *job) bool {
				return e.number == 1000 && e.kind == reader && slices.Contains(e.steps, rob)
			})
		})
		if len(small.jobs) != 1 || len(small.spells) != 1 || small.closes > 0 || len(small.jobs[0].steps) != 1 || small.jobs[0].way != acquire {
			t.Errorf("%+v, %+v", small, small.jobs)
		}
	}
}
