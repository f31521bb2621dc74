//go:build linux

package weather

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// TTL is that of every lease in a run: short, so that a run sees many of them end.
const TTL = time.Second

// Prefix is what the keys of a run begin with.
const Prefix = "weather:"

// WorkerConfig is what the run tells a worker process.
type WorkerConfig struct {
	ID      string            // of the worker: the same for its successor, if it is killed
	Life    string            // of this process
	Service string            // One, Plain, Redlock, Cluster, Sentinel or Replicas
	Servers []string          // where to find it
	Links   map[string]string // how to reach each server: through which proxy
	Store   string
	Dir     string
	Seed    uint64
	Holders int  // goroutines that contend for the shared names
	Alone   int  // that have a name for themselves, at least one
	Kinds   bool // and one for each other kind of lease
	Mute    bool // the server lets it publish and subscribe nothing
}

// lines says whether the processes that wait stand in line at the service.
func (c WorkerConfig) lines() bool { return c.Service != Plain && c.Service != Redlock }

// worker is one worker process.
type worker struct {
	WorkerConfig
	log   *diary
	locks holdfast
	http  *http.Client
	calls atomic.Int64
	stop  context.Context

	drawer drawer
}

// RunWorker does a worker's work until the commands end: "probe" stops the traffic and gets
// every name once, "close" closes the Locker and says what is left. Each is answered with a
// line on out.
func RunWorker(c WorkerConfig, commands io.Reader, out io.Writer) error {
	warmUp()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	log, err := newDiary(c.Dir, c.Life)
	if err != nil {
		return err
	}
	locks, hangUp, err := openHoldfast(c)
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	stop, halt := context.WithCancel(context.Background())
	defer halt()
	w := &worker{WorkerConfig: c, log: log, locks: locks, stop: stop,
		http: &http.Client{Transport: transport, Timeout: 5 * time.Second}}
	var traffic sync.WaitGroup
	for i, next := range w.habits() {
		random := rand.New(rand.NewPCG(c.Seed, uint64(i))) //nolint:gosec // G404: a seed is to be repeated
		traffic.Go(func() { w.traffic(random, next) })
	}
	traffic.Go(func() { w.watchStalls(stop.Done()) })
	in := bufio.NewScanner(commands)
	for in.Scan() {
		switch in.Text() {
		case "probe":
			halt()
			traffic.Wait()
			w.probe()
		case "close":
			w.close()
			hangUp()
			transport.CloseIdleConnections()
			w.left(goroutines, files+1) // one more is the history
		}
		if _, err := fmt.Fprintln(out, "done "+in.Text()); err != nil {
			return err
		}
	}
	return in.Err()
}

// traffic takes leases until it is told to stop.
func (w *worker) traffic(random *rand.Rand, next habit) {
	for w.stop.Err() == nil {
		if t := next(random); t != nil {
			w.turn(t)
		}
		w.pause(time.Duration(random.IntN(4000)) * time.Microsecond)
	}
}

func (w *worker) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.stop.Done():
	}
}
