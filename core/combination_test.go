package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// combinations is how many scenarios are played; HOLDFAST_MODEL_SEEDS says otherwise.
const combinations = 2000

// Two processes use the same names in all the ways there are, at the same time and through links
// that fail. A seed is a whole scenario: who asks for what and when, what is done with it, and the
// weather. What comes first of two things at the same instant is the scheduler's choice, and
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
	all := new(tally)
	t.Cleanup(func() { all.judge(t) }) // when all seeds are through
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			p := draw(rand.New(rand.NewPCG(seed, 7)))
			p.play(t, all).report(t, p)
		})
	}
}

// process is one of the two.
type process struct {
	number int
	link   *lab.Net
	prompt bool
	locks  *core.Locker

	fallback *fallback.Driver

	mu      sync.Mutex    // protects the fields below
	rough   bool          // something is wrong with its link
	lag     time.Duration // of commands that are under way
	quiet   time.Time     // when all is well again, and has arrived
	drain   time.Time     // when Drain was called; zero until then
	closing time.Time     // when Close was called; zero until then
	left    bool          // its Close has given up waiting
	told    int           // leases that its observer has heard of, minus those whose end it has
}

// scene is a scenario that is being played.
type scene struct {
	*scenario
	*chronicle
	store     *memlock.Store
	processes [2]*process
	stop      context.Context // ends only if somebody waits for ever
	order     *sync.Mutex     // of the server

	mu        sync.Mutex // protects the fields below
	requests  []*request
	parts     []*part
	tenancies map[string]*tenancy // by token
	waits     map[string]waits    // by token
	fences    map[string]*fences  // by name
	reserved  []reserved
	robbed    map[string]bool // tokens whose locks somebody has deleted
	given     []*given
	allMarks  []*mark
	moves     int // requests answered and leases ended
}

// play plays a scenario, and returns what has happened.
func (p *scenario) play(t *testing.T, all *tally) (story *chronicle) {
	t.Helper()
	story = new(chronicle)
	defer func() { // goroutines are left that nothing will ever wake
		if r := recover(); r != nil {
			story.fault("%v", r)
		}
	}()
	synctest.Test(t, func(*testing.T) {
		story.began = time.Now()
		s := &scene{
			scenario: p, chronicle: story, store: memlock.New(),
			tenancies: make(map[string]*tenancy), waits: make(map[string]waits), fences: make(map[string]*fences), robbed: make(map[string]bool), order: new(sync.Mutex),
		}
		s.perform()
		all.add(s)
	})
	return story
}

func (s *scene) perform() {
	stop, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.stop = stop
	for i := range s.processes {
		s.open(i)
	}
	over := make(chan struct{})
	var all sync.WaitGroup
	for _, e := range s.jobs {
		all.Go(func() { s.run(e) })
	}
	if s.closes > 0 {
		all.Go(s.closeEarly)
	}
	all.Go(s.weather)
	go func() {
		defer close(over)
		all.Wait()
	}()
	if !s.everybodyIsServed(over) {
		cancel() // so that the bubble ends, if it can
		for _, p := range s.processes {
			s.close(p, time.Minute)
		}
		return
	}
	s.nothingIsLeft()
}

// open makes a process.
func (s *scene) open(i int) {
	p := &process{number: i, prompt: s.prompt[i]}
	p.link = lab.New(&server{Store: s.store, scene: s, process: p, mu: s.order})
	var d driver.Driver = p.link
	if p.prompt {
		d = prompt{p.link}
	}
	count := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told += n
	}
	over := func(core.Event) { count(-1) }
	p.fallback = fallback.New(d)
	locks, err := core.New(p.fallback, core.WithTTL(s.ttl), observing(observer{
		Acquired: func(e core.Event) {
			if !e.Reentry {
				count(1)
			}
		},
		Released: over, Unconfirmed: over, Lost: over,
		Missed: func(e core.Event) { count(e.Leases) },
	}))
	if err != nil {
		panic(err) // of this test
	}
	p.locks = locks
	s.processes[i] = p
}

// lifetime is how long the server keeps a name, at most, of which nobody speaks.
func (s *scene) lifetime() time.Duration { return 2*s.ttl + 2*time.Millisecond }

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
