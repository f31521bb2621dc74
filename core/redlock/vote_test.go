package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// Processes whose requests reach the nodes in different orders split the vote again and again, unless their pauses part
// them. Of those who wait, each node would have an order of its own.
func TestProcessesWhoseMessagesCrossAreServedSoon(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		processes, turns, attempts int
		within                     time.Duration
	}{"split votes": {3, 10, 100, 5 * time.Second}, "waiters": {8, 1, 40, 500 * time.Millisecond}} {
		for seed := range uint64(20) {
			inMesh(t, 5, func(t *testing.T, m *mesh) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				some := func() time.Duration { return time.Duration(rnd.IntN(5000)) * time.Microsecond } // as far apart as the first pause is long
				first, err := m.process().locks.Acquire(t.Context(), "name")
				ok(t, err)
				if what == "split votes" {
					ok(t, first.Release(t.Context()))
				}
				var wg sync.WaitGroup
				var links []*lab.Net
				began := time.Now()
				for range row.processes {
					p := m.process()
					links = append(links, p.links[0])
					for _, l := range p.links {
						l.Delay(some(), some())
					}
					wg.Go(func() {
						for range row.turns {
							x, err := p.locks.Acquire(t.Context(), "name")
							ok(t, err)
							time.Sleep(time.Millisecond)
							ok(t, x.Release(t.Context()))
						}
					})
				}
				if what == "waiters" {
					time.Sleep(100 * time.Millisecond)
					began = time.Now()
					ok(t, first.Release(t.Context()))
				}
				wg.Wait()
				attempts := 0
				for _, l := range links {
					attempts += l.Calls(lab.OpAcquire)
				}
				if took := time.Since(began); took > row.within || attempts > row.attempts {
					t.Errorf("%s, seed %d: it took %s and %d attempts", what, seed, took, attempts)
				}
			})
		}
	}
}

// checker knows who is at work. Nobody else may be.
type checker struct {
	mu   sync.Mutex // protects the fields below
	who  string
	runs int
}

func (c *checker) had() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs
}

// work is what one does who holds the name: nothing, for as long as it is trusted.
func (c *checker) work(t *testing.T, who string, x *core.Lease, d time.Duration) {
	c.mu.Lock()
	if c.who != "" && x.Context().Err() == nil {
		t.Errorf("%s and %s both hold the name", c.who, who)
	}
	c.who = who
	c.runs++
	c.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.Context().Done():
	}
	c.mu.Lock()
	c.who = ""
	c.mu.Unlock()
}

// Every call to every node may be lost, or its reply, refused, reset, or delayed for
// longer than a TTL. No node ever forgets, so at no time are there two holders.
func TestNoFaultOfTheNetworkMakesTwoHolders(t *testing.T) {
	t.Parallel()
	ops := []lab.Op{lab.OpAcquire, lab.OpRenew, lab.OpRelease}
	runs := 0
	for _, n := range []int{3, 4, 5} {
		for seed := range uint64(8) {
			inMesh(t, n, func(t *testing.T, m *mesh) {
				var c checker
				var wg sync.WaitGroup
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				for who := range 4 {
					p := m.process()
					wg.Go(func() { // the weather
						rnd := rand.New(rand.NewPCG(seed, uint64(who)))
						for ctx.Err() == nil {
							for _, l := range p.links {
								for _, op := range ops {
									if rnd.IntN(3) == 0 {
										l.Next(op, lab.Fate(rnd.IntN(7)))
									}
								}
								l.Delay(time.Duration(rnd.IntN(20))*time.Millisecond, time.Duration(rnd.IntN(20))*time.Millisecond)
								if rnd.IntN(10) == 0 {
									l.Deliver()
								}
							}
							time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond)
						}
						p.heal()
					})
					wg.Go(func() {
						rnd := rand.New(rand.NewPCG(seed, uint64(100+who)))
						for ctx.Err() == nil {
							x, err := p.locks.Acquire(ctx, "name")
							if err != nil {
								continue
							}
							c.work(t, fmt.Sprint(who), x, time.Duration(rnd.IntN(30000))*time.Millisecond)
							if err := x.Release(t.Context()); err != nil && !errors.Is(err, core.ErrLost) && !errors.Is(err, core.ErrUnavailable) {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
				runs += c.runs
			})
		}
	}
	if runs < 50 {
		t.Errorf("%d runs", runs)
	}
}

func (p *process) heal() {
	for _, l := range p.links {
		l.Heal()
	}
}

// jitter gives links other delays again and again, until ctx ends: so a command can overtake an earlier one.
func jitter(ctx context.Context, links []*lab.Net, rnd *rand.Rand, most time.Duration) {
	some := func() time.Duration { return time.Duration(rnd.Int64N(int64(most))) }
	for ctx.Err() == nil {
		for _, l := range links {
			l.Delay(some(), some()/8)
		}
		time.Sleep(time.Millisecond)
	}
}

// Each attempt has two nodes, and a third one that answers too late: that one must not be in the way of the next
// attempt as somebody else.
func TestNobodyIsRefusedForWhatIsLeftOfItsOwnAttempts(t *testing.T) {
	t.Parallel()
	got := 0
	for seed := range uint64(5) {
		inMesh(t, 5, func(t *testing.T, m *mesh) {
			p := m.fenced()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go jitter(ctx, p.links[2:3], rand.New(rand.NewPCG(seed, 3)), 1500*time.Millisecond)
			p.links[0].All(lab.Refused)
			p.links[1].All(lab.Refused)
			for i := range 25 {
				x, err := p.locks.TryAcquire(t.Context(), fmt.Sprint("name-", i))
				if errors.Is(err, core.ErrHeld) {
					t.Errorf("seed %d, name %d: %v", seed, i, err)
				}
				if err == nil {
					got++
					_ = x.Release(t.Context()) // it may not be confirmed in time
				}
			}
			cancel()
			p.heal()
		})
	}
	if got == 0 {
		t.Error("nothing was granted")
	}
}
