package redlock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// queue has processes wait for "name", one after the other, and returns the order in which they had it.
func (m *mesh) queue(n int) (served func() []int) {
	m.t.Helper()
	var mu sync.Mutex // protects order
	var order []int
	var wg sync.WaitGroup
	for i := range n {
		p := m.process()
		wg.Go(func() {
			x, err := p.locks.Acquire(m.t.Context(), "name")
			if err != nil {
				m.t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			time.Sleep(time.Millisecond)
			if err := x.Release(m.t.Context()); err != nil {
				m.t.Error(err)
			}
		})
		synctest.Wait() // it is in line
	}
	return func() []int {
		wg.Wait()
		return order
	}
}

// serve releases x, and says in which order all who wait had the name, and how long that took.
func (m *mesh) serve(x *core.Lease, served func() []int) (order []int, took time.Duration) {
	m.t.Helper()
	began := time.Now()
	ok(m.t, x.Release(m.t.Context()))
	order = served()
	return order, time.Since(began)
}

func TestAMinorityThatIsDownChangesNothingForThoseWhoWait(t *testing.T) {
	t.Parallel()
	for what, harm := range map[string]func(m *mesh){
		"none":            func(*mesh) {},
		"before":          func(m *mesh) { m.stores[0].SetDown(true); m.stores[3].SetDown(true) },
		"silent":          func(m *mesh) { m.stores[0].SetDelay(10 * time.Second) },
		"loses its queue": func(m *mesh) { m.stores[0].SetDown(true) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inMesh(t, 5, func(t *testing.T, m *mesh) {
				x, err := m.process().locks.Acquire(t.Context(), "name")
				ok(t, err)
				synctest.Wait() // every node has granted it
				harm(m)
				served := m.queue(6)
				if what == "loses its queue" { // and others know of the places
					m.stores[0].SetDown(false)
				}
				order, took := m.serve(x, served)
				for i, who := range order {
					if i != who {
						t.Fatalf("served in the order %v", order)
					}
				}
				if took > 100*time.Millisecond {
					t.Errorf("it took %s", took)
				}
				for _, s := range m.stores {
					s.SetDown(false)
					s.SetDelay(0)
				}
			})
		})
	}
}

// Commands reach the nodes in any order, so each node would have an order of its own.
func TestAllNodesServeInOneOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		inMesh(t, 5, func(t *testing.T, m *mesh) {
			x, err := m.process().locks.Acquire(t.Context(), "name")
			ok(t, err)
			rnd := rand.New(rand.NewPCG(seed, 2))
			var wg sync.WaitGroup
			var links []*lab.Net
			for range 8 {
				p := m.process()
				links = append(links, p.links[0])
				for _, l := range p.links {
					l.Delay(time.Duration(rnd.IntN(5000))*time.Microsecond, time.Duration(rnd.IntN(5000))*time.Microsecond)
				}
				wg.Go(func() {
					x, err := p.locks.Acquire(t.Context(), "name")
					ok(t, err)
					ok(t, x.Release(t.Context()))
				})
			}
			time.Sleep(100 * time.Millisecond)
			began := time.Now()
			ok(t, x.Release(t.Context()))
			wg.Wait()
			attempts := 0
			for _, l := range links {
				attempts += l.Calls(lab.OpAcquire)
			}
			if took := time.Since(began); took > 500*time.Millisecond || attempts > 40 {
				t.Errorf("seed %d: 8 turns took %s and %d attempts", seed, took, attempts)
			}
		})
	}
}

// slow is a node whose Wait comes to nothing, while it is so: ctx ends before it was asked, or before it answers.
type slow struct {
	*memlock.Store
	err *atomic.Pointer[error]
}

func (s slow) WaitRanked(ctx context.Context, c ranked.Claim) error {
	err := s.err.Load()
	if err == nil {
		return s.Store.WaitRanked(ctx, c)
	}
	<-ctx.Done()
	return *err
}

// stands waits for so long, and is refused.
func (p *process) stands(c driver.Claim, d time.Duration) error {
	p.m.t.Helper()
	_, err := p.store.Wait(short(p.m.t, d), c)
	return err
}

// A call of Wait is one of many for an entry. What does not reach the nodes in time changes nothing of what they have.
// Later, the entry is one of somebody whom nobody hears of.
func TestAnEntryOutlastsAWaitThatNoNodeAnswersInTime(t *testing.T) {
	t.Parallel()
	for _, why := range []error{driver.NotSent(context.DeadlineExceeded), driver.UnknownOutcome(context.DeadlineExceeded)} {
		for _, fades := range []bool{false, true} {
			inMesh(t, 5, func(t *testing.T, m *mesh) {
				var err atomic.Pointer[error]
				nodes := make([]driver.Driver, len(m.stores))
				for i, s := range m.stores {
					nodes[i] = slow{s, &err}
				}
				p, other := m.over(nodes), m.process()
				held, a, b := p.claim("holder"), p.claim("first"), p.claim("second")
				ok(t, acquires(t, other, held))
				isHeld(t, p.stands(a, ttl/20))
				isHeld(t, other.stands(b, ttl/20))
				err.Store(&why)
				isUnknown(t, p.stands(a, ttl/20))
				if fades {
					for range 4 {
						isHeld(t, other.stands(b, driver.Recheck(ttl)))
					}
					isUnknown(t, p.stands(a, ttl/20))
				}
				synctest.Wait()
				for i, s := range m.stores {
					info, err := s.Inspect(t.Context(), "name")
					if want := map[bool]int{false: 2, true: 1}[fades]; err != nil || len(info.Line) != want {
						t.Errorf("%v, fades %v: node %d: %d in the queue, %v", why, fades, i, len(info.Line), err)
					}
				}
				err.Store(nil)
				ok(t, other.store.Release(t.Context(), held))
				first, next := func() error { return p.stands(a, ttl/20) }, func() error { return other.stands(b, ttl/20) }
				if fades {
					first, next = next, first
				}
				isHeld(t, next())
				ok(t, first())
			})
		}
	}
}

func acquires(t *testing.T, p *process, c driver.Claim) error {
	t.Helper()
	_, err := p.store.Acquire(t.Context(), c)
	return err
}

func TestWhoReachesNoQuorumStandsInNobodysWay(t *testing.T) {
	t.Parallel()
	inMesh(t, 5, func(t *testing.T, m *mesh) {
		x, err := m.process().locks.Acquire(t.Context(), "name")
		ok(t, err)
		apart := m.process()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = apart.locks.Acquire(ctx, "name") })
		synctest.Wait() // it is the first in line
		for i := range 3 {
			apart.links[i].All(lab.Refused)
		}
		time.Sleep(driver.Recheck(ttl) + 50*time.Millisecond)
		for i, s := range m.stores[3:] {
			if info, err := s.Inspect(t.Context(), "name"); err != nil || len(info.Line) > 0 {
				t.Errorf("node %d: %+v, %v", i+3, info.Line, err)
			}
		}
		order, took := m.serve(x, m.queue(1))
		if len(order) != 1 || took > driver.PlaceLife(ttl) { // what it has left where it cannot go
			t.Errorf("the other one: %v after %s", order, took)
		}
		cancel()
		wg.Wait()
		apart.heal()
	})
}

// Its nodes are silent, so it polls, and each attempt has the two that it reaches.
func TestWhoHearsOfNoQuorumStandsInNobodysWayForLong(t *testing.T) {
	t.Parallel()
	inMesh(t, 5, func(t *testing.T, m *mesh) {
		x, err := m.process().locks.Acquire(t.Context(), "name")
		ok(t, err)
		apart := m.process()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = apart.locks.Acquire(ctx, "name") })
		synctest.Wait() // it is the first in line
		for i := range 3 {
			apart.links[i].All(lab.RequestLost)
			apart.links[i].All(lab.RequestLost, lab.OpRank)
		}
		ok(t, x.Release(t.Context()))
		time.Sleep(3 * driver.PlaceLife(ttl))
		for i, s := range m.stores[3:] {
			if info, err := s.Inspect(t.Context(), "name"); err != nil || len(info.Line) > 0 {
				t.Errorf("node %d: %+v, %v", i+3, info.Line, err)
			}
		}
		cancel()
		wg.Wait()
		apart.heal()
	})
}

// Whoever has a quorum comes before those who wait. Otherwise nodes that have lost its lock would be lost to it for
// as long as anybody waits.
func TestAHealingComesBeforeThoseWhoWait(t *testing.T) {
	t.Parallel()
	inMesh(t, 5, func(t *testing.T, m *mesh) {
		p := m.process()
		x, err := p.locks.Acquire(t.Context(), "name")
		ok(t, err)
		served := m.queue(2)
		for i := range m.stores {
			p.flush(i)
			time.Sleep(ttl / 2) // it has been renewed
			ok(t, x.Err())
			m.wantTaken(5)
		}
		if order, _ := m.serve(x, served); len(order) != 2 {
			t.Errorf("%v", order)
		}
	})
}

// The last holder's release reaches a quorum, and then the others. The next holder does not wait for them, nor leave
// them to chance.
func TestTheNextHolderSoonHasAllNodes(t *testing.T) {
	t.Parallel()
	inMesh(t, 5, func(t *testing.T, m *mesh) {
		p, next := m.process(), m.process()
		x, err := p.locks.Acquire(t.Context(), "name")
		ok(t, err)
		var wg sync.WaitGroup
		wg.Go(func() {
			y, err := next.locks.Acquire(t.Context(), "name")
			ok(t, err)
			time.Sleep(50 * time.Millisecond)
			for i, s := range m.stores {
				if info, err := s.Inspect(t.Context(), "name"); err != nil || !info.Held || len(info.Line) > 0 {
					t.Errorf("node %d: %+v, %v", i, info, err)
				}
			}
			ok(t, y.Release(t.Context()))
		})
		synctest.Wait()
		p.links[3].Delay(5*time.Millisecond, 0)
		p.links[4].Delay(5*time.Millisecond, 0)
		ok(t, x.Release(t.Context()))
		wg.Wait()
		m.wantTaken(0)
		for i, s := range m.stores {
			if info, err := s.Inspect(t.Context(), "name"); err != nil || len(info.Line) > 0 {
				t.Errorf("node %d: the entry is not left: %v", i, err)
			}
		}
	})
}
