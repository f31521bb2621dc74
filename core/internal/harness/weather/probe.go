//go:build linux

package weather

import (
	"context"
	"net"
	"os"
	"runtime"
	"slices"
	"time"
)

// probe gets every name once: the weather is over. In the end most workers wait for a name in
// vain, for nobody to find what they would leave of that.
func (w *worker) probe() {
	defer w.crowd()
	for _, name := range slices.Concat([]string{soloName(w.ID, 0), ownHerd(w.ID), ownLocal(w.ID)}, sharedNames, manyNames, crowdNames, otherNames) {
		w.probeName(name)
	}
}

// probeName gets a name, and once more as long as that excludes this process only.
func (w *worker) probeName(name string) {
	begin := now()
	for {
		t := w.simply(name, 20*time.Second)
		if isLocal(name) {
			t.opts = localOnly
		}
		x := w.acquire(t)
		e := Event{Kind: Probed, Count: int(now() - begin), Class: "none"}
		if x != nil {
			e.Class = "ok"
			w.release(x, t, now())
		}
		if t.mode != Degraded || e.Count > int(20*time.Second) {
			w.note(t, e)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *worker) crowd() {
	t := w.simply("crowd", TTL/4)
	if x := w.acquire(t); x != nil {
		time.Sleep(TTL / 2)
		w.release(x, t, now())
	}
}

// close closes the Locker under work that goes on for a while.
func (w *worker) close() {
	t := w.simply(soloName(w.ID, 0), 20*time.Second)
	x := w.acquire(t)
	closed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		closed <- w.locks.Close(ctx)
	}()
	if x != nil {
		time.Sleep(TTL * 3 / 2) // renewed meanwhile, or the name would go to somebody else
		w.release(x, t, 0)
	}
	err := <-closed
	w.log.write(Event{Kind: Closed, Worker: w.Life, Class: class(err), Error: text(err)})
}

// left waits a little for what is ending, and notes what stays.
func (w *worker) left(goroutines, files int) {
	deadline := time.Now().Add(3 * time.Second)
	for time.Now().Before(deadline) && (runtime.NumGoroutine() > goroutines || descriptors() > files) {
		time.Sleep(10 * time.Millisecond)
	}
	e := Event{Kind: Left, Worker: w.Life, Name: "goroutines", Count: runtime.NumGoroutine(), Base: goroutines}
	if e.Count > e.Base {
		stacks := make([]byte, 1<<16)
		e.Error = string(stacks[:runtime.Stack(stacks, true)])
	}
	w.log.write(e)
	w.log.write(Event{Kind: Left, Worker: w.Life, Name: "descriptors", Count: descriptors(), Base: files})
}

// warmUp has the runtime open what it needs for its first socket, and keeps for good.
func warmUp() {
	if l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0"); err == nil {
		_ = l.Close()
	}
}

func descriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(open)
}
