//go:build linux

package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// roleEnv says what a process that this test binary has started is.
const roleEnv = "HOLDFAST_CHAOS_ROLE"

// Play does the part of a process that a run has started, and says whether there was one to do. TestMain calls it first.
func Play() (played bool, err error) {
	role := os.Getenv(roleEnv)
	if role == "" {
		return false, nil
	}
	var c WorkerConfig
	if err := json.Unmarshal([]byte(role), &c); err != nil {
		return true, err
	}
	return true, RunWorker(c, os.Stdin, os.Stdout)
}

// child is a process that this one has started.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // fails only if it has ended
	_ = c.cmd.Wait()
}

// say gives a command and waits for its answer.
func (c *child) say(command string) error {
	if _, err := io.WriteString(c.in, command+"\n"); err != nil {
		return err
	}
	if c.out.Scan(); c.out.Text() != "done "+command {
		return fmt.Errorf("%s: answered %q", command, c.out.Text())
	}
	return nil
}

// run is one run of faults.
type run struct {
	Plan

	tb      testing.TB
	ttl     time.Duration
	dir     string
	service *service
	log     *diary
	store   string
	last    atomic.Value // the process that wrote last under one of the shared names
	letGo   sync.Map     // what ends the hold of a *faultproxy.Proxy
	links   []sync.Mutex // held while a worker's links are disturbed

	mu       sync.Mutex // protects what follows
	lives    []int
	workers  []*child
	proxies  [][]*faultproxy.Proxy // of each worker, to each server
	faults   int
	counts   map[string]int
	refusals map[*faultproxy.Proxy]int // how many faults that are not over have it refuse connections
}

// Run is one fault run. It returns the evidence, how often each fault came, and where the histories are.
func Run(tb testing.TB, p Plan) (v *Evidence, faults map[string]int, dir string) {
	tb.Helper()
	r := &run{
		Plan: p, tb: tb, ttl: lifeIn(p.Service), dir: tb.TempDir(), counts: make(map[string]int), refusals: make(map[*faultproxy.Proxy]int),
		links: make([]sync.Mutex, p.Workers), lives: make([]int, p.Workers), workers: make([]*child, p.Workers), proxies: make([][]*faultproxy.Proxy, p.Workers),
	}
	r.service = newService(r, p.Service)
	r.Servers = len(r.service.nodes)
	var err error
	r.log, err = newDiary(r.dir, "run")
	backendtest.OK(r.tb, err)
	r.serveStore()
	for i := range p.Workers {
		for _, n := range r.service.nodes {
			r.proxies[i] = append(r.proxies[i], faultproxy.New(tb, n.server.Addr()))
		}
		r.startWorker(i)
	}
	tb.Cleanup(func() {
		for _, w := range r.workers {
			w.kill()
		}
	})
	r.play(NewSchedule(r.Plan))
	return r.evidence(), r.counts, r.dir
}

func (r *run) start(role string) *child {
	cmd := exec.CommandContext(context.Background(), os.Args[0]) //nolint:gosec // G204: this very program
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	backendtest.OK(r.tb, err)
	out, err := cmd.StdoutPipe()
	backendtest.OK(r.tb, err)
	backendtest.OK(r.tb, cmd.Start())
	return &child{cmd, in, bufio.NewScanner(out)}
}

func (r *run) isRedis() bool { return slices.Contains(redises, r.Service) }

func (r *run) startWorker(i int) {
	r.lives[i]++
	c := WorkerConfig{
		ID: workerID(i), Life: fmt.Sprintf("%s.%d", workerID(i), r.lives[i]),
		Service: r.Service, Servers: r.service.addrs, Links: make(map[string]string), Store: r.store, Dir: r.dir,
		Seed: r.Seed<<16 + uint64(i)<<8 + uint64(r.lives[i]), //nolint:gosec // G115: small numbers
	}
	for k, n := range r.service.nodes {
		c.Links[n.server.Announced()] = r.proxies[i][k].Addr()
	}
	role, err := json.Marshal(c)
	backendtest.OK(r.tb, err)
	r.workers[i] = r.start(string(role))
}

// play lets the faults happen, heals everything and waits for the end of all work.
func (r *run) play(faults []Fault) {
	begin := time.Now()
	var under sync.WaitGroup
	for _, f := range faults {
		time.Sleep(time.Until(begin.Add(f.At)))
		under.Go(func() { r.inject(f) })
	}
	time.Sleep(time.Until(begin.Add(r.Length)))
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
	if r.service.cluster != nil {
		r.service.cluster.AwaitComplete()
	}
	if r.service.sentinels != nil {
		r.service.agreed(r)
	}
	for _, n := range r.service.nodes {
		if n.admin == nil {
			continue
		}
		for _, key := range n.admin.Keys(ctx, prefix+"*").Val() {
			if ttl, err := n.admin.PTTL(ctx, key).Result(); err == nil && ttl == -1 {
				n.admin.Del(ctx, key) // an operator persisted it
			}
		}
	}
	r.log.write(Event{Kind: Healed, ID: "all"})
}

// leftovers are what the workers have left at the servers, once it has been quiet for as long as that may live: a lease, a
// queue entry, an idle subscription, or the queue in which a process was killed, if nobody has come by since.
func (r *run) leftovers() (left []string) {
	const patience = 15 * time.Second
	for began := time.Now(); ; time.Sleep(500 * time.Millisecond) {
		left = nil
		if r.isRedis() {
			for _, n := range r.service.nodes {
				left = append(left, n.leftovers(r)...)
			}
		} else {
			for x, err := range r.service.locks.Leases(r.tb.Context(), "") {
				if err != nil || x.Held {
					left = append(left, fmt.Sprintf("%s is held; %v", x.Name, err))
				}
			}
		}
		if len(left) == 0 || time.Since(began) > patience {
			return left
		}
	}
}

// evidence ends the workers and reads what they, the store and the servers have to say.
func (r *run) evidence() *Evidence {
	left := r.leftovers()
	r.each("close")
	time.Sleep(200 * time.Millisecond) // for the servers to see the ends of connections
	for _, n := range r.service.nodes {
		if n.admin != nil {
			lines, err := n.connections(r.tb.Context())
			backendtest.OK(r.tb, err)
			left = append(left, lines...)
		}
	}
	events, err := readHistories(r.dir)
	backendtest.OK(r.tb, err)
	ledgers, err := r.service.ledgers()
	v := newEvidence(r.Service, events, ledgers)
	v.Idle, v.Failed = left, err
	return v
}
