package backendtest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

var (
	stormFor  = flag.Duration("storm.for", 5*time.Second, "how long a storm lasts")
	stormSeed = flag.Uint64("storm.seed", 1, "what its faults and its workers choose")
	stormCalm = flag.Bool("storm.calm", false, "break nothing: then there is most contention")
)

// Storm is bad weather for one backend, which is an [inspect.Inspector]. Workers of several processes want the same few names, in every way that the
// backend claims to have, while links and servers break. The rules that it checks:
//
//   - no two rely on a name at one time, except readers together, or as many holders as their limit allows;
//   - nobody gets a name while a minimal hold or a hand-off keeps it;
//   - fences grow;
//   - a lease that is lost is told so when its trust ends, and the backend does not end it before;
//   - calls return when their contexts end, and say nothing but what the documentation says;
//   - afterwards every process gets every name, and nothing is held.
//
// A seed gives the same faults and the same choices of each worker, but not the same interleaving.
type Storm struct {
	Process Process
	Faults  []Fault // of the servers; links fail in all the ways of a faultproxy
}

const (
	stormProcesses = 4
	stormWorkers   = 4 // of each process
	stormNames     = 4
	enough         = 16 // leases: a storm that lets nobody through shows nothing, so it goes on without faults
)

// Run fails the test if a rule is broken. It says who held what when, and what was broken then.
func (s Storm) Run(t *testing.T) {
	t.Helper()
	w := &weather{t: t, history: newHistory(), kinds: make(map[string]int)}
	for range stormProcesses {
		d, links := s.Process()
		w.ttl = max(time.Second, d.Capabilities().MinTTL)
		w.wishes = wishes(d.Capabilities(), w.ttl)
		w.fences = d.Capabilities().Fence
		w.looks, _ = d.(inspect.Inspector)
		w.lockers, w.links = append(w.lockers, Locker(t, d, w.ttl)), append(w.links, links)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	storm, calm := context.WithTimeout(ctx, *stormFor)
	defer calm()
	var faults, workers sync.WaitGroup
	broken := s.Faults
	if *stormCalm {
		broken, w.links = nil, nil
	}
	faults.Go(func() { w.rage(storm, chance(1<<32), 600*time.Millisecond, linkFaults(w.links)) })
	faults.Go(func() { w.rage(storm, chance(1<<33), 2*time.Second, broken) })
	for i := range stormProcesses * stormWorkers {
		workers.Go(func() { w.work(ctx, i) })
	}
	<-storm.Done()
	faults.Wait()
	for _, links := range w.links {
		heal(links)
	}
	defer w.judge() // whatever happens
	Within(t, time.Minute, "the names are had again and again; "+again(t), func() bool {
		total, _ := w.leases()
		return total >= enough
	})
	cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		workers.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatalf("a call has not ended a minute after its context\n%s", again(t))
	}
	w.clear()
}

// chance is what one part of the storm chooses by.
func chance(part uint64) *rand.Rand { return rand.New(rand.NewPCG(*stormSeed, part)) } //nolint:gosec // G404: it is to be the same again

// again is the command for the same storm.
func again(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("again: go test -run '^%s$' . -args -storm.for %s -storm.seed %d -storm.calm=%t", t.Name(), *stormFor, *stormSeed, *stormCalm)
}

// weather is one storm while it lasts.
type weather struct {
	t       *testing.T
	ttl     time.Duration
	fences  bool
	wishes  []wish
	looks   inspect.Inspector
	lockers []*core.Locker        // one for each process
	links   [][]*faultproxy.Proxy // of each process

	*history

	counting sync.Mutex     // protects kinds
	kinds    map[string]int // leases
}

// clear waits until every process can have every name, and nothing is held or waited for.
func (w *weather) clear() {
	w.t.Helper()
	began := time.Now()
	for n := range stormNames {
		for _, locks := range w.lockers {
			Eventually(w.t, nameOf(n)+" can be had again; "+again(w.t), func() bool {
				x, err := locks.Acquire(w.t.Context(), nameOf(n), core.WithWait(10*time.Second))
				return err == nil && x.Release(w.t.Context()) == nil
			})
		}
	}
	Eventually(w.t, "nothing is held after the storm; "+again(w.t), func() bool {
		for info, err := range w.looks.Leases(w.t.Context(), "") {
			if err != nil || info.Held {
				return false
			}
		}
		return true
	})
	w.t.Logf("everybody came through within %s after the last fault", time.Since(began).Round(time.Millisecond))
}

// judge reports what the checks find.
func (w *weather) judge() {
	w.t.Helper()
	total, kinds := w.leases()
	w.t.Logf("seed %d: %d leases: %s; %d faults", *stormSeed, total, kinds, len(w.strikes))
	findings := w.check(w.fences)
	for _, f := range findings[:min(len(findings), 3)] {
		w.t.Errorf("%s\n%s\n%s", f.what, w.around(f, 2*w.ttl), again(w.t))
	}
	if n := len(findings) - 3; n > 0 {
		w.t.Errorf("and %d more like these", n)
	}
}

// leases are how many there were so far, and of which kinds.
func (w *weather) leases() (total int, kinds string) {
	w.counting.Lock()
	defer w.counting.Unlock()
	for _, n := range w.kinds {
		total += n
	}
	return total, fmt.Sprint(w.kinds)
}

func nameOf(n int) string { return fmt.Sprint("name-", n) }
