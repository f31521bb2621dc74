package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"
	"time"
)

// task is what a worker process is to do. Every run of a contestant has processes of its own,
// so that no heap, connection or goroutine of another one is in its way.
type task struct {
	Scenario, Contestant string

	Addr    string // of the server
	Section string // file of the section
	Proc    int    // which of the crew
	Length  time.Duration
	Quick   bool // small numbers: a proof that it runs, no figures
}

// report is what a worker has seen while it measured.
type report struct {
	Figures map[string]float64
	Waits   []time.Duration
	Turns   []int            // acquisitions of each goroutine
	Sent    map[string]int64 // commands, by name
	faults
}

// faults are what a lock must not do.
type faults struct {
	Overlaps int // somebody entered or left a section where somebody else was
	Fences   int // did not grow
	Failed   int // calls, and runs that ended early
	Left     int // keys at the server after all releases
	Note     string
}

func (f *faults) failed(err error) {
	f.Failed++
	if f.Note == "" {
		f.Note = err.Error()
	}
}

func (f *faults) add(g faults) {
	f.Overlaps += g.Overlaps
	f.Fences += g.Fences
	f.Failed += g.Failed
	f.Left += g.Left
	if f.Note == "" {
		f.Note = g.Note
	}
}

func (f *faults) none() bool { return f.Overlaps+f.Fences+f.Failed+f.Left == 0 }

func (r *report) add(o report) {
	if r.Figures == nil {
		r.Figures, r.Sent = map[string]float64{}, map[string]int64{}
	}
	for k, v := range o.Figures {
		r.Figures[k] += v
	}
	for k, v := range o.Sent {
		r.Sent[k] += v
	}
	r.Waits = append(r.Waits, o.Waits...)
	r.Turns = append(r.Turns, o.Turns...)
	r.faults.add(o.faults)
}

// worker is a scenario's part inside one process. No process of the crew begins a step
// before all have ended the one before.
type worker interface {
	prepare(e *env) error
	measure(e *env) error // begins at the same instant in all processes
	finish(e *env) error
}

// env is what a worker works with.
type env struct {
	task

	contestant contestant
	locks      locker
	section    *section
	traffic    *traffic
	baton      *baton
}

func (e *env) name(i int) string { return "bench:" + strconv.Itoa(i) }

// who is a goroutine of this process, for the section.
func (e *env) who(g int) uint64 { return uint64(e.Proc)<<32 | uint64(g+1) } //nolint:gosec // G115: small numbers

// work does the task that it reads, and answers what it has seen.
func work(ctx context.Context, in io.Reader, out io.Writer) error {
	parent, answer := json.NewDecoder(in), json.NewEncoder(out)
	e := &env{traffic: newTraffic(), baton: openBaton()}
	if err := parent.Decode(&e.task); err != nil {
		return err
	}
	s, ok := scenarioNamed(e.Scenario)
	if !ok {
		return fmt.Errorf("no scenario %q", e.Scenario)
	}
	if e.contestant, ok = contestantNamed(e.Contestant); !ok {
		return fmt.Errorf("no contestant %q", e.Contestant)
	}
	var err error
	if e.section, err = mapSection(e.Section, s.places); err != nil {
		return err
	}
	defer func() { _ = e.section.close() }()
	if e.locks, err = e.contestant.open(e.Addr, e.traffic); err != nil {
		return err
	}
	r := &report{Figures: map[string]float64{}}
	w := s.worker(ctx, r)
	var start time.Duration
	steps := []func() error{
		func() error { return w.prepare(e) },
		func() error {
			sleepUntil(start)
			return w.measure(e)
		},
		func() error { return w.finish(e) },
		func() error { return e.locks.close(ctx) },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			return err
		}
		if i == len(steps)-1 {
			break
		}
		if err := answer.Encode(i); err != nil {
			return err
		}
		if err := parent.Decode(&start); err != nil {
			return err
		}
	}
	maps.DeleteFunc(r.Sent, func(_ string, n int64) bool { return n == 0 })
	return answer.Encode(r)
}
