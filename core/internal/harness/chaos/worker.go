//go:build linux

package chaos

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// WorkerConfig is what the run tells a worker process.
type WorkerConfig struct {
	ID      string            // of the worker: the same for its successor, if it is killed
	Life    string            // of this process
	Service string            // one of the constants
	Servers []string          // where to find it
	Links   map[string]string // how to reach each server: through which proxy
	Store   string
	Dir     string
	Seed    uint64
}

// worker is one worker process.
type worker struct {
	WorkerConfig
	ttl   time.Duration
	can   driver.Capabilities
	log   *diary
	locks *core.Locker
	http  *http.Client
	calls atomic.Int64
	stop  context.Context
}

// RunWorker does a worker's work until the commands end: "probe" stops the traffic and gets every name once, "close" closes
// the Locker and says what is left. Each is answered with a line on out.
func RunWorker(c WorkerConfig, commands io.Reader, out io.Writer) error {
	if l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0"); err == nil {
		_ = l.Close() // the runtime has opened what it needs for its first socket, and keeps for good
	}
	goroutines, files := runtime.NumGoroutine(), descriptors()
	log, err := newDiary(c.Dir, c.Life)
	if err != nil {
		return err
	}
	store, hangUp, err := c.open()
	if err != nil {
		return err
	}
	said, err := os.Create(filepath.Join(c.Dir, c.Life+".log")) // for who reads a run that was kept
	if err != nil {
		return err
	}
	w := &worker{WorkerConfig: c, ttl: lifeIn(c.Service), can: store.Capabilities(), log: log}
	if w.locks, err = core.New(store, core.WithTTL(w.ttl), core.WithLogger(slog.New(slog.NewTextHandler(said, nil)))); err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	w.http = &http.Client{Transport: transport, Timeout: 5 * time.Second}
	stop, halt := context.WithCancel(context.Background())
	defer halt()
	w.stop = stop
	var traffic sync.WaitGroup
	for i, next := range w.habits() {
		random := rand.New(rand.NewPCG(c.Seed, uint64(i))) //nolint:gosec // G404: a seed is to be repeated
		traffic.Go(func() { w.traffic(random, next) })
	}
	traffic.Go(w.watchStalls)
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
			w.left(goroutines, files+2) // two more are the history and the log
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
		if a := next(random); a != nil {
			w.do(a)
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

// watchStalls writes down when this process got nothing done, and could write no history: the machine or its disk was busy
// with something else, or it was stopped. What is late by that is no library's fault.
func (w *worker) watchStalls() {
	const tick, worth = 20 * time.Millisecond, 50 * time.Millisecond
	for from := now(); w.stop.Err() == nil; from = now() {
		w.pause(tick)
		if at := w.log.idle(); time.Duration(at-from) > tick+worth {
			w.log.write(Event{At: at, Kind: Stalled, Worker: w.Life, Last: from})
		}
	}
}

// action is one call of a worker, and what it does with the lease.
type action struct {
	id    string
	names []string
	mode  Mode
	opts  []core.Option
	by    core.Handoff // that it comes with, if it does
	giver string       // the lease that has left it

	try      bool
	patience time.Duration
	hold     time.Duration
	keep     time.Duration // of WithMinHold
	deaf     bool          // the work does not listen to its context
	gone     bool          // the release has a ctx that has ended
	complete bool          // it ends with Complete

	end func(x lease, a *action, last int64) // instead of a release
}

// part is the id of the lease of one of the names.
func (a *action) part(name string) string {
	if len(a.names) == 1 {
		return a.id
	}
	return a.id + "/" + name
}

// lease is what a worker gets: of one name, or of several.
type lease interface {
	Context() context.Context
	Err() error
	ValidUntil() time.Time
	Release(ctx context.Context) error
	Complete(ctx context.Context) error
}

// several is the leases of several names.
type several struct {
	*core.LeaseSet
	end context.CancelCauseFunc // of the context that they were asked for under
}

func (x several) Release(ctx context.Context) error {
	defer x.end(nil)
	return x.LeaseSet.Release(ctx)
}

func fenceOf(x lease, name string) uint64 {
	if s, ok := x.(several); ok {
		return s.Lease(name).Fence()
	}
	return x.(*core.Lease).Fence()
}

func (w *worker) get(ctx context.Context, a *action) (lease, error) {
	opts := a.opts
	if a.try {
		opts = append(slices.Clip(opts), core.WithWait(0))
	}
	switch {
	case len(a.names) > 1:
		return w.getAll(ctx, a)
	case a.by.Name() != "":
		return w.locks.Attach(ctx, a.by, opts...)
	case a.try:
		return w.locks.TryAcquire(ctx, a.names[0], a.opts...)
	default:
		return w.locks.Acquire(ctx, a.names[0], a.opts...)
	}
}

// getAll asks for several names. The context of what it gets does not end with ctx, as that of a single lease does not.
func (w *worker) getAll(ctx context.Context, a *action) (lease, error) {
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	s, err := w.locks.AcquireAll(work, a.names, a.opts...)
	if !stop() && err == nil { // ctx ended together with the call
		err = ctx.Err()
		_ = s.Release(context.WithoutCancel(ctx)) // told to the log
	}
	return several{s, end}, err
}

// do makes one call, holds what it gets, and ends it.
func (w *worker) do(a *action) {
	x := w.acquire(a)
	if x == nil {
		return
	}
	last := w.hold(x, a)
	if a.end != nil {
		a.end(x, a, last)
	} else {
		w.release(x, a, last)
	}
}

// note writes an event of an action, one for each of its names.
func (w *worker) note(a *action, e Event) {
	e.At = cmp.Or(e.At, now())
	e.Worker, e.Mode = w.Life, a.mode
	for _, name := range a.names {
		e.ID, e.Name = a.part(name), name
		w.log.write(e)
	}
}

func (w *worker) acquire(a *action) lease {
	ctx, cancel := context.WithTimeout(context.Background(), a.patience)
	defer cancel()
	begin := now()
	w.note(a, Event{At: begin, Kind: Asked, Try: a.try, Deadline: begin + int64(a.patience), Handoff: a.giver})
	x, err := w.get(ctx, a)
	at := now()
	for _, name := range a.names {
		e := Event{
			At: at, Kind: Answered, Worker: w.Life, ID: a.part(name), Name: name, Mode: a.mode,
			Try: a.try, Class: class(err), Error: text(err), Keep: int64(a.keep), Handoff: a.giver,
		}
		if err == nil {
			e.Fence = fenceOf(x, name)
		}
		w.log.write(e)
	}
	if err != nil {
		return nil
	}
	return x
}

// class is what became of a call, in one word.
func class(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "ended"
	case errors.Is(err, core.ErrDuplicate):
		return "done"
	case errors.Is(err, core.ErrHeld):
		return "held"
	case errors.Is(err, core.ErrLost):
		return "lost"
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

// hold works under the lease: it writes to the store, and notes when the lease could last be trusted. Deaf work does not
// listen to its context. That the lease is trusted is asked for after the instant is read: trust never comes back, so it
// stood at that instant too.
func (w *worker) hold(x lease, a *action) (last int64) {
	ctx := x.Context()
	until := now() + int64(a.hold)
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
			w.note(a, Event{Kind: Believed, Last: at, Until: valid})
		}
		if !trusted && !a.deaf {
			return last
		}
		if step%8 == 0 {
			w.put(x, a)
		}
		if now() >= until || w.stop.Err() != nil {
			if a.deaf { // the write that comes late
				w.put(x, a)
			}
			return last
		}
		time.Sleep(3 * time.Millisecond)
	}
}

// put writes to the store, whatever the lease says by now. Those who share a name do not.
func (w *worker) put(x lease, a *action) {
	if a.mode != Alone {
		return
	}
	for _, name := range a.names {
		body, _ := json.Marshal(write{w.Life, name, a.part(name), fenceOf(x, name)}) // of plain fields
		if reply := w.post(context.Background(), "", body); reply != nil {           // else the write is lost, as writes are
			_ = reply.Close()
		}
	}
}

// post sends something to the store's process, nil if it asks.
func (w *worker) post(ctx context.Context, path string, body []byte) io.ReadCloser {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+w.Store+path, bytes.NewReader(body))
	if err != nil {
		panic(err) // the address is the run's
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return nil
	}
	return resp.Body
}

func (w *worker) release(x lease, a *action, last int64) {
	end := x.Release
	if a.complete {
		end = x.Complete
	}
	_ = w.finish(a, Event{Last: last, Complete: a.complete}, end) // it is noted
}

// finish notes how a lease ends.
func (w *worker) finish(a *action, e Event, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	deadline := now() + int64(5*time.Second)
	if a.gone {
		cancel()
		deadline = now()
	}
	e.Kind, e.Deadline = Releasing, deadline
	w.note(a, e)
	err := end(ctx)
	w.note(a, Event{Kind: Released, Class: class(err), Error: text(err)})
	return err
}

// isOf says whether a process is one of a worker's: there is another one after each kill.
func isOf(life, worker string) bool {
	rest, ok := strings.CutPrefix(life, worker)
	return ok && (rest == "" || rest[0] == '.')
}
