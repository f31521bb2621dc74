package bench

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// patience is how long waiters may go on after the end of a run, to get what they wait for. What they get then counts as a wait,
// not as an acquisition.
const patience = 5 * time.Second

var errHung = fmt.Errorf("still waiting %s after the end", patience)

// patient returns a context that ends when patience does. It has no deadline, which would shorten some libraries' leases.
func patient(ctx context.Context, until time.Time) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(time.Until(until)+patience, func() { cancel(errHung) })
	return ctx, func() {
		late.Stop()
		cancel(nil)
	}
}

// loop is goroutines that acquire and release as fast as they can.
type loop struct{}

// tally is what one goroutine has seen.
type tally struct {
	faults

	turns int
	waits []time.Duration
}

func (l loop) prepare(e *env) {
	l.all(e, min(e.Length/2, 100*time.Millisecond)) // connections, scripts, heaps: all that is slow once
}

func (l loop) measure(e *env) {
	before, counted := e.traffic.sent.Load(), make(chan int64, 1)
	time.AfterFunc(e.Length, func() { counted <- e.traffic.sent.Load() - before })
	for _, t := range l.all(e, e.Length) {
		e.Turns = append(e.Turns, t.turns)
		e.Waits = append(e.Waits, t.waits...)
		e.faults.add(t.faults)
	}
	e.Sent["all"] = <-counted
}

func (loop) finish(*env) {}

// all runs all goroutines, which stop to begin anew after the length.
func (l loop) all(e *env, length time.Duration) []tally {
	until := time.Now().Add(length)
	ctx, cancel := patient(e.ctx, until)
	defer cancel()
	tallies := make([]tally, e.to-e.from)
	var wg sync.WaitGroup
	for i := range tallies {
		wg.Go(func() { tallies[i] = l.one(ctx, e, e.from+i, until) })
	}
	wg.Wait()
	return tallies
}

// one is goroutine g of all.
func (loop) one(ctx context.Context, e *env, g int, until time.Time) tally {
	t := tally{waits: make([]time.Duration, 0, 1024)}
	locks, name := e.locker(g), lockName(g%e.Size.names())
	for began := time.Now(); began.Before(until); {
		x, err := locks.lock(ctx, name)
		now := time.Now()
		if err == nil {
			t.waits = append(t.waits, now.Sub(began))
			if now.Before(until) {
				t.turns++
			}
			err = x.Release(ctx)
		}
		if err != nil {
			t.failed(cmp.Or(context.Cause(ctx), err))
		}
		began = time.Now()
	}
	return t
}
