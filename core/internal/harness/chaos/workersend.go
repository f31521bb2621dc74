//go:build linux

package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// probe gets every name once: the faults are over. In the end most workers wait for a name in vain, for nobody to find what
// they would leave of that.
func (w *worker) probe() {
	for _, name := range slices.Concat([]string{soloName(w.ID)}, sharedNames, otherNames) {
		const most = 20 * time.Second
		e := Event{Kind: Probed, Class: "none"}
		for begin := now(); e.Class == "none" && e.Count < int(most); e.Count = int(now() - begin) {
			a := w.simply(name, most)
			if x := w.acquire(a); x != nil {
				e.Class = "ok"
				w.release(x, a, now())
			} else { // the servers may say that they are not ready
				time.Sleep(20 * time.Millisecond)
			}
		}
		w.note(w.simply(name, 0), e)
	}
	a := w.simply("crowd", w.ttl/4)
	if x := w.acquire(a); x != nil {
		time.Sleep(w.ttl / 2)
		w.release(x, a, now())
	}
}

// simply is an action of the probes: nothing goes wrong with it.
func (w *worker) simply(name string, patience time.Duration) *action {
	return &action{id: fmt.Sprintf("%s-%d", w.Life, w.calls.Add(1)), names: []string{name}, patience: patience}
}

// close closes the Locker under work that goes on for a while.
func (w *worker) close() {
	a := w.simply(soloName(w.ID), 20*time.Second)
	x := w.acquire(a)
	closed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		closed <- w.locks.Close(ctx)
	}()
	if x != nil {
		time.Sleep(w.ttl * 3 / 2) // renewed meanwhile, or the name would go to somebody else
		w.release(x, a, 0)
	}
	err := <-closed
	w.log.write(Event{Kind: Closed, Worker: w.Life, Class: class(err), Error: text(err)})
}

// left waits a little for what is ending, and notes what stays.
func (w *worker) left(goroutines, files int) {
	deadline := time.Now().Add(3 * time.Second)
	for time.Now().Before(deadline) && (runtime.NumGoroutine() > goroutines || descriptors() > files) {
		time.Sleep(50 * time.Millisecond)
		runtime.GC() // go-zookeeper 1.0.4 leaves the connection of a session that has expired to it
	}
	e := Event{Kind: Left, Worker: w.Life, Name: "goroutines", Count: runtime.NumGoroutine(), Base: goroutines}
	if e.Count > e.Base {
		stacks := make([]byte, 1<<16)
		e.Error = string(stacks[:runtime.Stack(stacks, true)])
	}
	w.log.write(e)
	e = Event{Kind: Left, Worker: w.Life, Name: "descriptors", Count: descriptors(), Base: files}
	if open, err := filepath.Glob("/proc/self/fd/*"); err == nil && e.Count > e.Base {
		for _, file := range open {
			to, _ := os.Readlink(file) // it may be gone
			e.Error += file + " " + to + "\n"
		}
	}
	w.log.write(e)
}

func descriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(open)
}
