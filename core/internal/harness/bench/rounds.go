package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bench is one run of the program.
type bench struct {
	server *server
	addr   string // at which workers find it, if it is far away
	rounds int
	length time.Duration // of one contestant's round
	quick  bool
	before float64 // memory of the empty server
	idle   float64 // CPU time that it uses in a second
	dir    string  // for sections
	say    func(progress string)
}

// result is what a contestant has shown in a scenario.
type result struct {
	Contestant string
	Rounds     []map[string]float64 // nil for one that failed
	Faults     faults
}

// values are a figure's, round by round; NaN where there is none.
func (r result) values(figure string) []float64 {
	v := make([]float64, len(r.Rounds))
	for i, figures := range r.Rounds {
		x, ok := figures[figure]
		if !ok {
			x = math.NaN()
		}
		v[i] = x
	}
	return v
}

// race runs the contestants of a scenario in interleaved rounds: what disturbs the machine for
// a while disturbs all of them. Each round begins with another one.
func (b *bench) race(ctx context.Context, s scenario) ([]result, error) {
	results := make([]result, len(s.contestants))
	for i, name := range s.contestants {
		results[i].Contestant = name
	}
	for round := range b.rounds {
		b.say(fmt.Sprintf("%s: round %d of %d", s.name, round+1, b.rounds))
		for i := range results {
			r := &results[(i+round)%len(results)]
			figures, faults, err := b.once(ctx, s, r.Contestant)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				faults.failed(err)
			}
			r.Rounds = append(r.Rounds, figures)
			r.Faults.add(faults)
		}
	}
	return results, nil
}

// once is one contestant's round, on an empty server and in processes of its own.
func (b *bench) once(ctx context.Context, s scenario, name string) (map[string]float64, faults, error) {
	if err := b.server.empty(ctx); err != nil {
		return nil, faults{}, err
	}
	var err error
	if b.before, err = b.server.memory(ctx); err != nil {
		return nil, faults{}, err
	}
	// Fences are remembered from round to round, and of each contestant apart.
	path := filepath.Join(b.dir, s.name+" "+strings.ReplaceAll(name, "/", "-"))
	shared, err := mapSection(path, s.places)
	if err != nil {
		return nil, faults{}, err
	}
	shared.clear()
	if err := shared.close(); err != nil {
		return nil, faults{}, err
	}
	r := run{length: time.Duration(s.length * float64(b.length))}
	bound, cancel := context.WithTimeout(ctx, r.length+cmp.Or(s.patience, 2*time.Minute))
	defer cancel()
	t := task{Scenario: s.name, Contestant: name, Addr: cmp.Or(b.addr, b.server.addr), Section: path, Length: r.length, Quick: b.quick}
	c, err := hire(bound, t, s.procs)
	if err != nil {
		return nil, faults{}, err
	}
	err = b.lead(bound, c, &r)
	if err != nil {
		cancel() // those who still run are told nothing more
	}
	if err := errors.Join(err, c.dismiss()); err != nil {
		return nil, faults{}, err
	}
	contestant, _ := contestantNamed(name)
	if r.Left, err = b.server.left(ctx, contestant.prefix); err != nil {
		return nil, faults{}, err
	}
	return s.figures(r), r.faults, nil
}

// lead takes a crew through its steps: prepare, measure, finish, report.
func (b *bench) lead(ctx context.Context, c *crew, r *run) error {
	if err := c.await(); err != nil {
		return err
	}
	start := monotonic() + 5*time.Millisecond // time for everybody to hear of it
	if err := c.proceed(start); err != nil {
		return err
	}
	sleepUntil(start)
	before, err := b.server.usage(ctx)
	if err != nil {
		return err
	}
	used, err := b.server.cpu(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	sleepUntil(start + r.length)
	share, err := b.server.share(ctx, used, began)
	if err != nil {
		return err
	}
	r.cpu = time.Duration(max(0, share-b.idle) * float64(r.length))
	after, err := b.server.usage(ctx)
	if err != nil {
		return err
	}
	now, err := b.server.memory(ctx)
	if err != nil {
		return err
	}
	for range 2 { // after measure, after finish
		if err := c.await(); err != nil {
			return err
		}
		if err := c.proceed(0); err != nil {
			return err
		}
	}
	if r.report, err = c.reports(); err != nil {
		return err
	}
	r.server = serverTime(before, after, r.Sent)
	r.calls = calls(before, after)
	r.grown = now - b.before
	return nil
}

// folder makes the one of what the processes share.
func (b *bench) folder() (remove func(), err error) {
	b.dir, err = os.MkdirTemp("", "holdfast-bench-")
	return func() { _ = os.RemoveAll(b.dir) }, err
}

// run races all the scenarios, and tells the sink about each as soon as it is over. It says
// whether Holdfast kept its promises.
func (b *bench) run(ctx context.Context, all []scenario, sink func(outcome) error) (sound bool, err error) {
	remove, err := b.folder()
	if err != nil {
		return false, err
	}
	defer remove()
	sound = true
	for _, s := range all {
		results, err := b.race(ctx, s)
		if err != nil {
			return false, err
		}
		o := outcome{scenario: s, Scenario: s.name, Title: s.title, Results: results}
		for _, g := range s.goals {
			o.Goals = append(o.Goals, g.judge(results))
		}
		sound = sound && !slices.ContainsFunc(results, func(r result) bool {
			c, _ := contestantNamed(r.Contestant)
			return !c.peer && !r.Faults.none()
		})
		if err := sink(o); err != nil {
			return false, err
		}
	}
	return sound, nil
}
