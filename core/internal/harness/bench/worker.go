package bench

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// task is what a worker process is to do. Every run of a contestant has processes of its own, so that no heap, connection or
// goroutine of another one is in its way.
type task struct {
	Scenario, Contestant string

	Addr    string // of the server
	Section string // a file that programs of earlier commits share
	Proc    int    // which of the crew
	Length  time.Duration
	Size    size
}

// size is how much there is of something, in all processes.
type size struct {
	N       int // of what the scenario is about
	Members int // lockers. As far as a server can tell, each is a process: it has connections, a watchdog and places in queues of its own
	Procs   int // in which they live, since hundreds of them would measure how this machine switches between processes
	Names   int // in use; N unless told
}

func (z size) names() int { return cmp.Or(z.Names, z.N) }

// report is what a worker has seen while it measured.
type report struct {
	Figures map[string]float64
	Waits   []time.Duration
	Turns   []int            // acquisitions of each goroutine
	Sent    map[string]int64 // commands; programs of earlier commits tell them apart by name
	faults
}

// faults are calls that failed, and runs that ended early.
type faults struct {
	Failed int
	Note   string
}

func (f *faults) failed(err error) { f.add(faults{Failed: 1, Note: err.Error()}) }

func (f *faults) add(g faults) {
	f.Failed += g.Failed
	if f.Note == "" {
		f.Note = g.Note
	}
}

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

// worker is a scenario's part inside one process. No process of the crew begins a step before all have ended the one before.
// What ends a step early ends the process.
type worker interface {
	prepare(e *env)
	measure(e *env) // begins at the same instant in all processes
	finish(e *env)
}

// env is what a worker works with.
type env struct {
	task
	*report

	mu       sync.Mutex // protects the report's faults
	ctx      context.Context
	lockers  []locker // of this process
	from, to int      // which of N are its own
	traffic  *traffic
	baton    baton
}

// failed counts a call that failed. It may be called by many goroutines.
func (e *env) failed(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.report.failed(err)
	}
}

// observe notes what this process sends and uses for the length of the run.
func (e *env) observe() {
	before, cpu := e.traffic.sent.Load(), cpuTime()
	time.Sleep(e.Length)
	e.Sent["all"] = e.traffic.sent.Load() - before
	e.Figures["cpu"] = (cpuTime() - cpu).Seconds()
}

func (e *env) locker(i int) locker { return e.lockers[i%len(e.lockers)] }

func lockName(i int) string { return "bench:" + strconv.Itoa(i) }

// part is what falls to process i of n, of something that there is so often: from, and up to.
func part(all, i, n int) (from, to int) { return all * i / n, all * (i + 1) / n }

// work does the task that it reads, and answers what it has seen.
func work(ctx context.Context, in io.Reader, out io.Writer) error {
	parent, answer := json.NewDecoder(in), json.NewEncoder(out)
	e := &env{ctx: ctx, report: &report{Figures: map[string]float64{}, Sent: map[string]int64{}}, traffic: new(traffic), baton: openBaton()}
	if err := parent.Decode(&e.task); err != nil {
		return err
	}
	s, ok := scenarioNamed(e.Scenario)
	c, ok2 := contestantNamed(e.Contestant)
	if !ok || !ok2 {
		return fmt.Errorf("no scenario %q or no contestant %q", e.Scenario, e.Contestant)
	}
	e.from, e.to = part(e.Size.N, e.Proc, e.Size.Procs)
	first, last := part(e.Size.Members, e.Proc, e.Size.Procs)
	for range last - first {
		l, err := c.open(e.Addr, e.traffic)
		if err != nil {
			return err
		}
		e.lockers = append(e.lockers, l)
	}
	var start time.Duration
	w := s.worker()
	for _, step := range []func(){
		func() { w.prepare(e) },
		func() {
			sleepUntil(start)
			w.measure(e)
		},
		func() { w.finish(e) },
	} {
		step()
		if err := answer.Encode(0); err != nil {
			return err
		}
		if err := parent.Decode(&start); err != nil {
			return err
		}
	}
	for _, l := range e.lockers {
		if err := l.close(ctx); err != nil {
			return err
		}
	}
	return answer.Encode(e.report)
}

// must ends the process.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// baton passes instants from each process of a crew to the next one, in a ring. A reader sleeps until one comes, without polling that
// would take time from those who are measured.
type baton struct{ in, out *os.File }

func openBaton() baton {
	const in, out = 3, 4           // the files that exec.Cmd.ExtraFiles hands to a worker
	_ = unix.SetNonblock(in, true) // lets reads have a deadline
	return baton{os.NewFile(in, "baton in"), os.NewFile(out, "baton out")}
}

func (b baton) pass(at time.Duration) error { return binary.Write(b.out, binary.NativeEndian, at) }

func (b baton) await(until time.Time) (at time.Duration, err error) {
	if err := b.in.SetReadDeadline(until); err != nil {
		return 0, err
	}
	err = binary.Read(b.in, binary.NativeEndian, &at)
	return at, err
}

// monotonic reads the clock that all processes of a machine share. Go's own monotonic reading is of the same clock, but tells only
// differences inside one process.
func monotonic() time.Duration {
	var ts unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)) // every Unix has it
	return time.Duration(ts.Nano())
}

func sleepUntil(at time.Duration) { time.Sleep(at - monotonic()) }

// cpuTime is what the process has used, in user and kernel mode.
func cpuTime() time.Duration {
	var u unix.Rusage
	must(unix.Getrusage(unix.RUSAGE_SELF, &u)) // only a bad argument fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
