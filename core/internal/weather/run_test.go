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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// roleEnv says what a process that this test binary has started is.
const roleEnv = "HOLDFAST_WEATHER_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role string) error {
	if role == "store" {
		return runStore()
	}
	var c WorkerConfig
	if err := json.Unmarshal([]byte(role), &c); err != nil {
		return err
	}
	return RunWorker(c, os.Stdin, os.Stdout)
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
	cmd := exec.Command(os.Args[0])
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
	tb     testing.TB
	dir    string
	seed   uint64
	server *servers.Server
	admin  *redis.Client
	log    *diary
	store  string
	links  []sync.Mutex // held while a worker's link is disturbed

	mu      sync.Mutex // protects what follows
	watcher *monitor
	lives   []int
	workers []*child
	proxies []*faultproxy.Proxy
	faults  int
	counts  map[string]int
}

func newRun(tb testing.TB, seed uint64, workers int) *run {
	tb.Helper()
	r := &run{tb: tb, dir: tb.TempDir(), seed: seed, server: servers.Redis(tb), counts: make(map[string]int)}
	r.admin = redis.NewClient(&redis.Options{
		Addr: r.server.Addr(), ClientName: admin, MaxRetries: 5, PoolSize: 4,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	tb.Cleanup(func() { _ = r.admin.Close() })
	var err error
	if r.log, err = newDiary(r.dir, "run"); err != nil {
		tb.Fatal(err)
	}
	if r.watcher, err = watch(r.server.Addr(), nil); err != nil {
		tb.Fatal(err)
	}
	store := start(tb, roleEnv+"=store", "HOLDFAST_WEATHER_DIR="+r.dir)
	tb.Cleanup(store.kill)
	r.store = store.line()
	r.links = make([]sync.Mutex, workers)
	r.lives = make([]int, workers)
	r.workers = make([]*child, workers)
	for i := range workers {
		r.proxies = append(r.proxies, faultproxy.New(tb, r.server.Addr()))
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
		Redis: r.proxies[i].Addr(), Store: r.store, Dir: r.dir,
		Seed: r.seed<<16 + uint64(i)<<8 + uint64(r.lives[i]), Holders: *flagHolders,
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
	for _, p := range r.proxies {
		p.Heal()
	}
	for _, name := range r.keys() {
		if ttl, err := r.admin.PTTL(ctx, name).Result(); err == nil && ttl == -1 && nameOf(name) != "" {
			r.admin.Del(ctx, name) // an operator persisted it
		}
	}
	r.log.write(Event{Kind: Healed, ID: "all"})
}

func (r *run) keys() []string {
	keys, err := r.admin.Keys(r.tb.Context(), "*").Result()
	if err != nil {
		r.tb.Errorf("KEYS: %v", err)
	}
	return keys
}

// scan looks for what the workers have left at the server, once it has been quiet for long
// enough that a lease, a place and an idle subscription would have ended.
func (r *run) scan() (left []string) {
	const idle = 2 * time.Second // of a subscription: see redislock
	time.Sleep(TTL + idle + 500*time.Millisecond)
	for _, key := range r.keys() {
		if key != "{"+Prefix+"}:v1:fence" {
			left = append(left, "key "+key)
		}
	}
	channels, err := r.admin.PubSubChannels(r.tb.Context(), "*").Result()
	if err != nil {
		r.tb.Errorf("PUBSUB CHANNELS: %v", err)
	}
	for _, c := range channels {
		left = append(left, "channel "+c)
	}
	return left
}

// connections are those that the workers still have.
func (r *run) connections() (left []string) {
	list, err := r.admin.ClientList(r.tb.Context()).Result()
	if err != nil {
		r.tb.Errorf("CLIENT LIST: %v", err)
	}
	for line := range strings.Lines(list) {
		if strings.Contains(line, " name=w") {
			left = append(left, "connection "+strings.TrimSpace(line))
		}
	}
	return left
}

// evidence ends the workers and reads what they, the store and the server have to say.
func (r *run) evidence() *Evidence {
	left := r.scan()
	r.each("close")
	time.Sleep(200 * time.Millisecond) // for the server to see the ends of connections
	left = append(left, r.connections()...)
	events, err := readHistories(r.dir)
	if err != nil {
		r.tb.Fatal(err)
	}
	commands := r.watcher.stop()
	v := newEvidence(events, commands)
	v.Idle, v.Failed = left, r.watcher.failed
	return v
}
