//go:build linux

package weather

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// TTL is that of every lease in a run: short, so that a run sees many of them end.
const TTL = time.Second

// Prefix is what the keys of a run begin with.
const Prefix = "weather:"

// sharedNames are what all workers contend for. Besides, each has a name of its own, which
// nobody else asks for.
var sharedNames = []string{"a", "b"}

func soloName(id string) string { return "solo-" + id }

// WorkerConfig is what the run tells a worker process.
type WorkerConfig struct {
	ID      string // of the worker: the same for its successor, if it is killed
	Life    string // of this process
	Redis   string
	Store   string
	Dir     string
	Seed    uint64
	Holders int // goroutines that contend for the shared names
}

// worker is one worker process.
type worker struct {
	WorkerConfig
	log   *diary
	locks *core.Locker
	http  *http.Client
	calls atomic.Int64
	stop  context.Context
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
	rdb := redis.NewClient(&redis.Options{
		Addr: c.Redis, ClientName: c.Life, PoolSize: 16, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix(Prefix)), core.WithTTL(TTL))
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	stop, halt := context.WithCancel(context.Background())
	defer halt()
	w := &worker{WorkerConfig: c, log: log, locks: locks, stop: stop,
		http: &http.Client{Transport: transport, Timeout: 5 * time.Second}}
	var traffic sync.WaitGroup
	for i := range c.Holders + 1 {
		random := rand.New(rand.NewPCG(c.Seed, uint64(i))) //nolint:gosec // G404: a seed is to be repeated
		traffic.Go(func() { w.traffic(random, i == c.Holders) })
	}
	in := bufio.NewScanner(commands)
	for in.Scan() {
		switch in.Text() {
		case "probe":
			halt()
			traffic.Wait()
			w.probe()
		case "close":
			w.close()
			_ = rdb.Close()
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
func (w *worker) traffic(random *rand.Rand, solo bool) {
	for w.stop.Err() == nil {
		name := sharedNames[random.IntN(len(sharedNames))]
		if solo {
			name = soloName(w.ID)
		}
		w.turn(random, name, random.IntN(4) == 0 || solo && random.IntN(2) == 0)
		w.pause(time.Duration(random.IntN(4000)) * time.Microsecond)
	}
}

func (w *worker) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.stop.Done():
	}
}

// turn makes one call, and holds what it gets.
func (w *worker) turn(random *rand.Rand, name string, try bool) {
	patience := time.Duration(200+random.IntN(3000)) * time.Millisecond
	if random.IntN(6) == 0 { // a caller in a hurry leaves in the middle
		patience = time.Duration(200+random.IntN(30_000)) * time.Microsecond
	}
	hold := time.Duration(random.IntN(8)) * time.Millisecond
	long := 4
	switch {
	case w.Holders == 0: // a run of many short calls
		long = 0
	case name == soloName(w.ID): // it keeps nobody waiting
		long = 25
	}
	switch n := random.IntN(100); {
	case n < long:
		hold = TTL + time.Duration(random.IntN(int(TTL)))
	case n < 30:
		hold = time.Duration(random.IntN(80)) * time.Millisecond
	}
	deaf, gone := random.IntN(2) == 0, random.IntN(5) == 0
	x, id := w.acquire(name, patience, try)
	if x == nil {
		return
	}
	last := w.hold(x, id, hold, deaf)
	w.release(x, id, last, gone)
}

func (w *worker) acquire(name string, patience time.Duration, try bool) (*core.Lease, string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	id := fmt.Sprintf("%s-%d", w.Life, w.calls.Add(1))
	begin := now()
	w.log.write(Event{At: begin, Kind: Asked, Worker: w.Life, ID: id, Name: name, Try: try, Deadline: begin + int64(patience)})
	get := w.locks.Acquire
	if try {
		get = w.locks.TryAcquire
	}
	x, err := get(ctx, name)
	e := Event{Kind: Answered, Worker: w.Life, ID: id, Name: name, Try: try, Class: class(err), Error: text(err)}
	if err == nil {
		e.Fence = x.Fence()
	}
	w.log.write(e)
	return x, id
}

// class is what became of a call, in one word.
func class(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "ended"
	case errors.Is(err, core.ErrHeld):
		return "held"
	case errors.Is(err, core.ErrLost):
		return "lost"
	case errors.Is(err, core.ErrClosed):
		return "closed"
	case errors.Is(err, core.ErrUnavailable):
		return "unavailable"
	default:
		return "other"
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// hold works under the lease: it writes to the store, and notes when the lease could last be
// trusted. Deaf work does not listen to its context. That the lease is trusted is asked for
// after the instant is read: trust never comes back, so it stood at that instant too.
func (w *worker) hold(x *core.Lease, id string, d time.Duration, deaf bool) (last int64) {
	ctx := x.Context()
	until := now() + int64(d)
	noted := int64(0)
	for step := 0; ; step++ {
		at := now()
		trusted := ctx.Err() == nil && x.Err() == nil
		if trusted {
			last = at
		}
		if trusted && at-noted > int64(25*time.Millisecond) {
			noted = at
			valid := at + int64(time.Until(x.ValidUntil()))
			w.log.write(Event{At: now(), Kind: Believed, Worker: w.Life, ID: id, Name: x.Name(), Last: at, Until: valid})
		}
		if !trusted && !deaf {
			return last
		}
		if step%8 == 0 {
			w.put(x, id)
		}
		if now() >= until || w.stop.Err() != nil {
			if deaf { // the write that comes late
				w.put(x, id)
			}
			return last
		}
		time.Sleep(3 * time.Millisecond)
	}
}

// put writes to the store, whatever the lease says by now.
func (w *worker) put(x *core.Lease, id string) {
	body, _ := json.Marshal(write{w.Life, x.Name(), id, x.Fence()}) // of plain fields
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+w.Store, bytes.NewReader(body))
	if err != nil {
		panic(err) // the address is the run's
	}
	if resp, err := w.http.Do(req); err == nil { // else the write is lost, as writes are
		_ = resp.Body.Close()
	}
}

func (w *worker) release(x *core.Lease, id string, last int64, gone bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	deadline := now() + int64(5*time.Second)
	if gone {
		cancel()
		deadline = now()
	}
	w.log.write(Event{Kind: Releasing, Worker: w.Life, ID: id, Name: x.Name(), Last: last, Deadline: deadline})
	err := x.Release(ctx)
	w.log.write(Event{Kind: Released, Worker: w.Life, ID: id, Name: x.Name(), Class: class(err), Error: text(err)})
}

// probe gets every name once: the weather is over. In the end most workers wait for a name in
// vain, for nobody to find what they would leave of that.
func (w *worker) probe() {
	defer w.crowd()
	for _, name := range append([]string{soloName(w.ID)}, sharedNames...) {
		begin := now()
		x, id := w.acquire(name, 20*time.Second, false)
		e := Event{Kind: Probed, Worker: w.Life, ID: id, Name: name, Count: int(now() - begin), Class: "none"}
		if x != nil {
			e.Class = "ok"
			w.release(x, id, now(), false)
		}
		w.log.write(e)
	}
}

func (w *worker) crowd() {
	x, id := w.acquire("crowd", TTL/4, false)
	if x != nil {
		time.Sleep(TTL / 2)
		w.release(x, id, now(), false)
	}
}

// close closes the Locker under work that goes on for a while.
func (w *worker) close() {
	x, id := w.acquire(soloName(w.ID), 20*time.Second, false)
	closed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		closed <- w.locks.Close(ctx)
	}()
	if x != nil {
		time.Sleep(TTL * 3 / 2) // renewed meanwhile, or the name would go to somebody else
		w.release(x, id, 0, false)
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
