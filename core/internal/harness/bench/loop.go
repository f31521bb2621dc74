package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// patience is how long waiters may go on after the end of a run, to get what they wait for.
// What they get then counts as a wait, not as an acquisition.
const patience = 5 * time.Second

var errHung = fmt.Errorf("still waiting %s after the end", patience)

// patient returns a context that ends when patience does. It has no deadline, which would
// shorten some libraries' leases.
func patient(ctx context.Context, until time.Time) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(time.Until(until)+patience, func() { cancel(errHung) })
	return ctx, func() {
		late.Stop()
		cancel(nil)
	}
}

// loop is goroutines that acquire and release as fast as they can.
type loop struct {
	*report

	ctx        context.Context
	goroutines int
	oneName    bool // or a name for each goroutine
}

// tally is what one goroutine has seen.
type tally struct {
	faults

	turns int
	waits []time.Duration
}

func (l *loop) prepare(e *env) error {
	l.all(e, min(e.Length/2, 100*time.Millisecond)) // connections, scripts, heaps: all that is slow once
	return nil
}

func (l *loop) measure(e *env) error {
	before := e.traffic.counts()
	var sent map[string]int64
	counted := make(chan struct{})
	time.AfterFunc(e.Length, func() {
		sent = e.traffic.since(before)
		close(counted)
	})
	tallies := l.all(e, e.Length)
	<-counted
	l.Sent = sent
	for _, t := range tallies {
		l.Turns = append(l.Turns, t.turns)
		l.Waits = append(l.Waits, t.waits...)
		l.faults.add(t.faults)
	}
	return nil
}

func (l *loop) finish(*env) error { return nil }

// all runs all goroutines, which stop to begin anew after the length.
func (l *loop) all(e *env, length time.Duration) []tally {
	until := time.Now().Add(length)
	ctx, cancel := patient(l.ctx, until)
	defer cancel()
	tallies := make([]tally, l.goroutines)
	var wg sync.WaitGroup
	for g := range tallies {
		wg.Go(func() { tallies[g] = l.one(ctx, e, g, until) })
	}
	wg.Wait()
	return tallies
}

func (l *loop) one(ctx context.Context, e *env, g int, until time.Time) tally {
	t := tally{waits: make([]time.Duration, 0, 1024)}
	who, i := e.who(g), e.Proc*l.goroutines+g
	if l.oneName {
		i = 0
	}
	name, place := e.name(i), e.section.place(i)
	for began := time.Now(); began.Before(until); {
		x, err := e.locks.lock(ctx, name)
		now := time.Now()
		if err == nil {
			t.waits = append(t.waits, now.Sub(began))
			if now.Before(until) {
				t.turns++
			}
			t.visit(place, who, fenceOf(x))
			err = x.Release(ctx)
		}
		if err != nil {
			t.failed(cmp.Or(context.Cause(ctx), err))
		}
		began = time.Now()
	}
	return t
}

// visit enters a section and leaves it.
func (f *faults) visit(p *place, who, fence uint64) {
	f.enter(p, who, fence)
	f.leave(p, who)
}

func (f *faults) enter(p *place, who, fence uint64) {
	alone, grown := p.enter(who, fence)
	if !alone {
		f.Overlaps++
	}
	if !grown {
		f.Fences++
	}
}

func (f *faults) leave(p *place, who uint64) {
	if !p.leave(who) {
		f.Overlaps++
	}
}
