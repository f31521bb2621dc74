//go:build linux

package weather

import "time"

// A process that gets nothing done for stallWorth more than it wanted to rest is stalled.
const (
	stallTick  = 20 * time.Millisecond
	stallWorth = 50 * time.Millisecond
)

// watchStalls writes down, until stop is closed, when this process got nothing done, and could write no
// history: the machine or its disk was busy with something else, or it was stopped. What is late by
// that is no library's fault.
func (w *worker) watchStalls(stop <-chan struct{}) {
	for from := now(); ; from = now() {
		select {
		case <-time.After(stallTick):
		case <-stop:
			return
		}
		if at := w.log.idle(); time.Duration(at-from) > stallTick+stallWorth {
			w.log.write(Event{At: at, Kind: Stalled, Worker: w.Life, Last: from})
		}
	}
}

// stalled is for how much of a time a worker process got nothing done.
func (v *Evidence) stalled(worker string, from, to int64) (d int64) {
	for _, e := range v.Events {
		if e.Kind == Stalled && e.Worker == worker {
			d += max(0, min(e.At, to)-max(e.Last, from))
		}
	}
	return d
}
