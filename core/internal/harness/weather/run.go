//go:build linux

package weather

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

// roleEnv says what a process that this test binary has started is.
const roleEnv = "HOLDFAST_WEATHER_ROLE"

// Play does the part of a process that a run has started, and says whether there was one to do.
// TestMain of whoever makes runs calls it first.
func Play() (played bool, err error) {
	role := os.Getenv(roleEnv)
	switch role {
	case "":
		return false, nil
	case "store":
		return true, runStore()
	}
	if config, ok := strings.CutPrefix(role, "soak "); ok {
		var c SoakConfig
		if err := json.Unmarshal([]byte(config), &c); err != nil {
			return true, err
		}
		return true, RunSoak(c, os.Stdin, os.Stdout)
	}
	var c WorkerConfig
	if err := json.Unmarshal([]byte(role), &c); err != nil {
		return true, err
	}
	return true, RunWorker(c, os.Stdin, os.Stdout)
}

func runStore() error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return serveStore(os.Getenv("HOLDFAST_WEATHER_DIR"), l)
}

// child is a process that this one has started.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(tb testing.TB, env ...string) *child {
	tb.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0]) //nolint:gosec // G204: this very program
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	return &child{cmd, in, bufio.NewScanner(out)}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // fails only if it has ended
	_ = c.cmd.Wait()
}

func (c *child) line() string {
	c.out.Scan()
	return c.out.Text()
}

// say gives a command and waits for its answer.
func (c *child) say(command string) error {
	if _, err := io.WriteString(c.in, command+"\n"); err != nil {
		return err
	}
	if answer := c.line(); answer != "done "+command {
		return fmt.Errorf("%s: answered %q", command, answer)
	}
	return nil
}

// run is one run of bad weather.
type run struct {
	Options

	tb      testing.TB
	dir     string
	service *service
	log     *diary
	store   string
	locks   *core.Locker // an operator's; nil where there is none
	links   []sync.Mutex // held while a worker's links are disturbed

	mu       sync.Mutex // protects what follows
	lives    []int
	workers  []*child
	proxies  [][]*faultproxy.Proxy // of each worker, to each server
	drippers []*dripper            // of each worker, where there is one server
	faults   int
	counts   map[string]int
	refusals map[*faultproxy.Proxy]int // how many faults that are not over have it refuse connections
}

// Options are what a run is made of.
type Options struct {
	Plan

	Holders int  // goroutines of each worker that contend
	Alone   int  // that have a name for themselves
	Kinds   bool // and some with leases of other kinds
}

// Run is one run of bad weather. It returns the evidence, how often each fault came, and where
// the histories are.
func Run(tb testing.TB, o Options) (v *Evidence, faults map[string]int, dir string) {
	tb.Helper()
	r := newRun(tb, o)
	r.Servers = len(r.service.nodes)
	r.weather(NewSchedule(r.Plan), o.Length)
	return r.evidence(), r.counts, r.dir
}

func newRun(tb testing.TB, o Options) *run {
	tb.Helper()
	r := &run{Options: o, tb: tb, dir: tb.TempDir(), counts: make(map[string]int), refusals: make(map[*faultproxy.Proxy]int)}
	r.service = newService(r, o.Service)
	workers := o.Workers
	var err error
	if r.log, err = newDiary(r.dir, "run"); err != nil {
		tb.Fatal(err)
	}
	store := start(tb, roleEnv+"=store", "HOLDFAST_WEATHER_DIR="+r.dir)
	tb.Cleanup(store.kill)
	r.store = store.line()
	if o.Service == One {
		r.locks = r.operator()
	}
	r.links = make([]sync.Mutex, workers)
	r.lives = make([]int, workers)
	r.workers = make([]*child, workers)
	r.proxies = make([][]*faultproxy.Proxy, workers)
	for i := range workers {
		for _, n := range r.service.nodes {
			r.proxies[i] = append(r.proxies[i], faultproxy.New(tb, r.service.gates.worker(i, n.server.Addr())))
		}
		if len(r.service.nodes) == 1 {
			r.drippers = append(r.drippers, newDripper(tb, r.proxies[i][0].Addr()))
		}
		r.startWorker(i)
	}
	tb.Cleanup(func() {
		for _, w := range r.workers {
			w.kill()
		}
	})
	return r
}

func (r *run) startWorker(i int) {
	r.lives[i]++
	c := WorkerConfig{
		ID: workerID(i), Life: fmt.Sprintf("%s.%d", workerID(i), r.lives[i]),
		Service: r.service.kind, Servers: r.service.addrs, Links: make(map[string]string), Store: r.store, Dir: r.dir,
		Seed: r.Seed<<16 + uint64(i)<<8 + uint64(r.lives[i]), Holders: r.Holders, Alone: r.Alone, Kinds: r.Kinds, //nolint:gosec // G115: small numbers
	}
	c.Mute = r.Kinds && c.lines() && i > 0 && i == r.Workers-1
	for addr, gate := range r.service.gates.of(i) {
		c.Links[addr] = gate.Addr() // the Sentinels'
	}
	for k, n := range r.service.nodes {
		c.Links[n.server.Announced()] = r.proxies[i][k].Addr()
	}
	if r.drippers != nil {
		c.Links[r.service.addrs[0]] = r.drippers[i].listener.Addr().String()
	}
	role, err := json.Marshal(c)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.workers[i] = start(r.tb, roleEnv+"="+string(role))
}

// weather lets the faults happen, heals everything and waits for the end of all work.
func (r *run) weather(faults []Fault, length time.Duration) {
	begin := time.Now()
	var under sync.WaitGroup
	for _, f := range faults {
		time.Sleep(time.Until(begin.Add(f.At)))
		under.Go(func() { r.inject(f) })
	}
	time.Sleep(time.Until(begin.Add(length)))
	under.Wait()
	r.heal()
	r.each("probe")
}

// each gives all workers a command at once.
func (r *run) each(command string) {
	r.tb.Helper()
	var all sync.WaitGroup
	for i, w := range r.workers {
		all.Go(func() {
			if err := w.say(command); err != nil {
				r.tb.Errorf("%s: %v", workerID(i), err)
			}
		})
	}
	all.Wait()
}

// heal ends what faults do not end by themselves, as an operator would.
func (r *run) heal() {
	ctx := r.tb.Context()
	for _, p := range slices.Concat(r.proxies...) {
		p.Heal()
	}
	r.service.settle()
	for _, n := range r.service.nodes {
		for _, key := range n.keys(r) {
			if ttl, err := n.admin.PTTL(ctx, key).Result(); err == nil && ttl == -1 && nameOf(key) != "" {
				n.admin.Del(ctx, key) // an operator persisted it
			}
		}
	}
	r.log.write(Event{Kind: Healed, ID: "all"})
}

// scan looks for what the workers have left at the servers, once it has been quiet for long
// enough that a lease, a place and an idle subscription would have ended. The line in which a process
// was killed is there for longer, if nobody has come by since; so is, at one of five nodes, a line that could not be left
// there in bad weather.
func (r *run) scan() []string {
	const (
		idle  = 2 * time.Second // of a subscription: see redislock
		quiet = TTL + idle + 500*time.Millisecond
		dead  = 10 * time.Second // a line without those who stood in it, as well
	)
	time.Sleep(quiet)
	left := r.leftovers()
	other := func(what string) bool { return !strings.Contains(what, "}:v1:line") }
	may := r.counts["kill"] > 0 || r.service.kind == Redlock
	if len(left) == 0 || !may || slices.ContainsFunc(left, other) {
		return left
	}
	time.Sleep(dead - quiet)
	return r.leftovers()
}

func (r *run) leftovers() (left []string) {
	for _, n := range r.service.nodes {
		left = append(left, n.leftovers(r)...)
	}
	return left
}

// evidence ends the workers and reads what they, the store and the servers have to say.
func (r *run) evidence() *Evidence {
	left := r.scan()
	r.each("close")
	time.Sleep(200 * time.Millisecond) // for the servers to see the ends of connections
	for _, n := range r.service.nodes {
		lines, err := n.connections(r.tb.Context())
		if err != nil {
			r.tb.Errorf("CLIENT LIST: %v", err)
		}
		left = append(left, lines...)
	}
	events, err := readHistories(r.dir)
	if err != nil {
		r.tb.Fatal(err)
	}
	texts, err := readTexts(r.dir)
	if err != nil {
		r.tb.Fatal(err)
	}
	ledgers, err := r.service.ledgers()
	v := newEvidence(r.service.kind, events, ledgers)
	v.Texts = texts
	v.Idle, v.Failed = left, err
	return v
}
