package redlock_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
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
			overNodes(t, 5, func(t *testing.T, m *nodeSet) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				some := func() time.Duration { return time.Duration(rnd.IntN(5000)) * time.Microsecond } // as far apart as the first pause is long
				first := acquire(t, m.process().locks, "name")
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
							x := acquire(t, p.locks, "name")
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

func (p *process) heal() {
	for _, l := range p.links {
		l.Heal()
	}
}

// Neither the attempt nor a release has had an answer. The Store remembers until when that may be there, and not the attempt.
func TestNobodyIsRefusedForWhatWentUnanswered(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p := m.process()
		m.squat(0)
		p.links[0].Delay(time.Millisecond, 0) // node 2 is asked before the others have decided
		p.links[1].All(lab.Refused)
		p.links[2].Next(lab.OpAcquire, lab.ReplyLost)
		p.links[2].All(lab.RequestLost, lab.OpRelease)
		_, err := p.store.Acquire(short(t, 2*time.Second), p.claim("first"))
		isHeld(t, err)
		time.Sleep(ttl / 2)
		ok(t, m.stores[0].Release(t.Context(), driver.Claim{Name: "name", Token: "squatter"}))
		for _, token := range []string{"second", "third"} {
			_, err := p.store.Acquire(short(t, time.Second), p.claim(token))
			if driver.Explain(err).Kind != driver.NotDone {
				t.Errorf("%s: %v", token, err)
			}
		}
	})
}
