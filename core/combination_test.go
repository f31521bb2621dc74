package core_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// combinations is how many scenarios are played; HOLDFAST_MODEL_SEEDS says otherwise.
const combinations = 2000

// Two processes use the same names in all the ways there are, at the same time and through links
// that fail. A seed is a whole scenario: who asks for what and when, what is done with it, and the
// faults. What comes first of two things at the same instant is the scheduler's choice, and
// pauses have jitter, so a seed may have to be run more than once: -run '/^4$' -count=20.
func TestEveryCombinationKeepsOneHolderAndServesEverybody(t *testing.T) {
	t.Parallel()
	seeds := uint64(combinations)
	if s := os.Getenv("HOLDFAST_MODEL_SEEDS"); s != "" {
		var err error
		if seeds, err = strconv.ParseUint(s, 10, 32); err != nil {
			t.Fatal(err)
		}
	}
	all := &tally{counts: make(map[string]int)}
	t.Cleanup(func() { all.judge(t) }) // when all seeds are through
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			draw(seed).play(t, all)
		})
	}
}

// process is one of the two.
type process struct {
	number   int
	link     *lab.Net
	locks    *core.Locker
	fallback *fallback.Driver
	told     atomic.Int64 // leases that its observer has heard of, minus those whose end it has

	// Protected by scene.mu.
	rough   bool          // something is wrong with its link
	lossy   bool          // it is more than slow
	lag     time.Duration // of commands that are under way
	quiet   time.Time     // when all is well again, and has arrived
	sound   time.Time     // when it was lossy last
	drain   time.Time     // when Drain was called; zero until then
	closing time.Time     // when Close was called; zero until then
	left    bool          // its Close has given up waiting
}

// scene is a scenario that is being played.
type scene struct {
	*scenario
	chronicle
	store     *memlock.Store
	processes [2]*process
	stop      context.Context // ends only if somebody waits for ever

	mu       sync.Mutex // protects the fields below, and is held while the server executes a command
	requests []*request
	parts    []*part
	grants   map[string]*grant // by token
	fences   map[string]fences // by name, the largest that were seen
	kept     []*kept
	robbed   map[string]bool // tokens whose locks somebody has deleted
	marks    []*mark
	moves    int // requests answered and leases ended
	counts   map[string]int
}

// play plays a scenario. If that breaks a promise, it fails the test; of the first ones it tells how their smallest part does so.
func (p *scenario) play(t *testing.T, all *tally) {
	t.Helper()
	s := p.once(t)
	all.add(s.counts)
	if len(s.broken) == 0 {
		return
	}
	if all.failed.Add(1) > 3 {
		t.Errorf("%q", s.broken)
		return
	}
	small := s
	p.shrunk(func(q *scenario) bool {
		for range 5 { // what comes first at one instant is another thing each time
			if again := q.once(t); len(again.broken) > 0 {
				small = again
				return true
			}
		}
		return false
	})
	t.Errorf("%q\nThe smallest part that was found to break a promise has %s", s.broken, small.report())
}

// once plays a scenario once.
func (p *scenario) once(t *testing.T) (s *scene) {
	t.Helper()
	s = &scene{
		scenario: p, grants: make(map[string]*grant), fences: make(map[string]fences),
		robbed: make(map[string]bool), counts: make(map[string]int),
	}
	defer func() {
		if r := recover(); r != nil { // goroutines are left that nothing will ever wake
			s.fault("%v", r)
		}
	}()
	synctest.Test(t, func(*testing.T) {
		s.began, s.store = time.Now(), memlock.New()
		s.perform()
	})
	return s
}

func (s *scene) perform() {
	stop, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.stop = stop
	for i := range s.processes {
		s.processes[i] = s.open(i)
	}
	over := make(chan struct{})
	var all sync.WaitGroup
	for _, e := range s.jobs {
		all.Go(func() { s.run(e) })
	}
	if s.closes > 0 {
		all.Go(s.closeEarly)
	}
	all.Go(s.faults)
	go func() {
		defer close(over)
		all.Wait()
	}()
	if s.everybodyIsServed(over) {
		s.nothingIsLeft()
		return
	}
	cancel() // so that the bubble ends, if it can
	for _, p := range s.processes {
		s.close(p, time.Minute)
	}
}

// open makes a process.
func (s *scene) open(i int) *process {
	p := &process{number: i}
	p.link = lab.New(&server{Store: s.store, scene: s, process: p})
	if s.prompt[i] {
		p.link.Prompt(func(ctx context.Context) context.Context {
			return context.WithValue(context.Background(), requestKey{}, requestOf(ctx))
		})
	}
	p.fallback = fallback.New(p.link)
	over := func(core.Event) { p.told.Add(-1) }
	var err error
	p.locks, err = core.New(p.fallback, core.WithTTL(s.ttl), observing(observer{
		core.EventAcquired: func(e core.Event) {
			if !e.Reentry {
				p.told.Add(1)
			}
		},
		core.EventReleased: over, core.EventUnconfirmed: over, core.EventLost: over,
		core.EventMissed: func(e core.Event) { p.told.Add(int64(e.Leases)) },
	}))
	if err != nil {
		panic(err) // of this test
	}
	return p
}

// lifetime is how long the server keeps a name, at most, of which nobody speaks.
func (s *scene) lifetime() time.Duration { return max(s.longest, 2*s.ttl) + 2*time.Millisecond }

// everybodyIsServed waits until all jobs are done, and says whether they are. They are not if
// nothing happens for longer than what a name can be kept for.
func (s *scene) everybodyIsServed(over <-chan struct{}) bool {
	for before := -1; ; {
		select {
		case <-over:
			return true
		case <-time.After(3*s.lifetime() + 10*time.Second):
		}
		s.mu.Lock()
		moves, waiting := s.moves, s.waiting()
		s.mu.Unlock()
		if moves == before {
			s.fault("for ever: %v", waiting)
			s.note("%s", stacks())
			return false
		}
		before = moves
	}
}

// chronicle is what has happened in a scenario, and what should not have.
type chronicle struct {
	book   sync.Mutex // protects the fields below
	began  time.Time
	lines  []func() string // formatted only for who wants to know how a fault came about
	broken []string        // promises
}

func (c *chronicle) note(format string, args ...any) {
	c.book.Lock()
	defer c.book.Unlock()
	at := time.Since(c.began)
	c.lines = append(c.lines, func() string { return fmt.Sprintf("\t%12v  ", at) + fmt.Sprintf(format, args...) })
}

// fault says that a promise was broken.
func (c *chronicle) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.note("FAULT: %s", text)
	c.book.Lock()
	defer c.book.Unlock()
	if !slices.Contains(c.broken, text) {
		c.broken = append(c.broken, text)
	}
}

// report tells what was played, and what happened.
func (s *scene) report() string {
	lines := []string{fmt.Sprintf("%d faults, a TTL of %v, processes that are prompt: %v, and", len(s.broken), s.ttl, s.prompt)}
	for _, e := range s.jobs {
		lines = append(lines, fmt.Sprintf("\t%+v", *e))
	}
	for _, line := range s.lines {
		lines = append(lines, line())
	}
	return strings.Join(lines, "\n")
}

// stacks returns those of the goroutines of this bubble, for who wants to know why nothing happens.
func stacks() string {
	buf := make([]byte, 1<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	bubble := regexp.MustCompile(`synctest bubble \d+`).FindString(all[0])
	return strings.Join(slices.DeleteFunc(all, func(stack string) bool { return !strings.Contains(stack, bubble+"]") }), "\n\n")
}

// tally counts what comes up in the scenarios: what never does is not tested.
type tally struct {
	mu     sync.Mutex // protects the fields below
	played int
	counts map[string]int

	failed atomic.Int32
}

func (s *scene) count(really bool, what string) {
	if really {
		s.counts[what]++
	}
}

func (a *tally) add(counts map[string]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.played++
	for what, n := range counts {
		a.counts[what] += n
	}
}

// judge fails the test if something came up too rarely to say anything.
func (a *tally) judge(t *testing.T) {
	t.Helper()
	t.Logf("%d scenarios: %v", a.played, a.counts)
	for _, what := range []any{
		core.ErrHeld, core.ErrUnavailable, core.ErrDuplicate, core.ErrDraining, core.ErrClosed, core.ErrInvalid, "leases", "degraded leases",
		"lost leases", "readers", "holders of a limit", "re-entries", "turns without a command", "leases by a hand-off", "leases of several names",
		"grants to commands that were left", "grants in line", "deleted locks", "completions",
	} {
		if n := a.counts[fmt.Sprint(what)]; a.played >= 500 && n < a.played/50 {
			t.Errorf("%d scenarios, and %d of %q: too few to say anything", a.played, n, what)
		}
	}
}
