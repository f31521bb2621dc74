package redlock_test

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// queue has processes wait for "name", one after the other, and returns the order in which they had it.
func (m *nodeSet) queue(n int) (served func() []int) {
	m.t.Helper()
	turns := make(chan int, n)
	for i := range n {
		p := m.process()
		go func() {
			x, err := p.locks.Acquire(m.t.Context(), "name")
			if turns <- i; err == nil {
				time.Sleep(time.Millisecond)
				err = x.Release(m.t.Context())
			}
			if err != nil {
				m.t.Error(err)
			}
		}()
		synctest.Wait() // it is in line
	}
	return func() (order []int) {
		for range n {
			order = append(order, <-turns)
		}
		return order
	}
}

// serve releases x, and says in which order all who wait had the name, and how long that took.
func (m *nodeSet) serve(x *core.Lease, served func() []int) (order []int, took time.Duration) {
	m.t.Helper()
	began := time.Now()
	ok(m.t, x.Release(m.t.Context()))
	order = served()
	return order, time.Since(began)
}

func TestAMinorityThatIsDownChangesNothingForThoseWhoWait(t *testing.T) {
	t.Parallel()
	for what, harm := range map[string]func(m *nodeSet){
		"none":            func(*nodeSet) {},
		"before":          func(m *nodeSet) { m.stores[0].SetDown(true); m.stores[3].SetDown(true) },
		"silent":          func(m *nodeSet) { m.stores[0].SetDelay(10 * time.Second) },
		"loses its queue": func(m *nodeSet) { m.stores[0].SetDown(true) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			overNodes(t, 5, func(t *testing.T, m *nodeSet) {
				x := acquire(t, m.process().locks, "name")
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
			overNodes(t, 5, func(t *testing.T, m *nodeSet) {
				var err atomic.Pointer[error]
				p, other := m.over(m.wrapped(func(_ int, n *node) {
					n.around = func(ctx context.Context, op lab.Op, call func(context.Context) error) error {
						why := err.Load()
						if why == nil || op != lab.OpWait {
							return call(ctx)
						}
						<-ctx.Done()
						return *why
					}
				})), m.process()
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
				m.wantLine(map[bool]int{false: 2, true: 1}[fades], m.stores...)
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

// Two say that it is the entry's turn, and then all connections to the others break, the last one as the last of all to answer.
func TestAWaitThatNoQuorumAnswersEndsWithTheLastAnswer(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		p := m.over(m.wrapped(func(i int, n *node) {
			n.around = func(ctx context.Context, op lab.Op, call func(context.Context) error) error {
				if op != lab.OpWait || i < 2 {
					return call(ctx)
				}
				time.Sleep(time.Duration(i) * time.Millisecond)
				return driver.UnknownOutcome(io.EOF)
			}
		}))
		began := time.Now()
		isUnknown(t, p.stands(p.claim("waits"), ttl/2))
		if took := time.Since(began); took != 4*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
}

func acquires(t *testing.T, p *process, c driver.Claim) error {
	t.Helper()
	_, err := p.store.Acquire(t.Context(), c)
	return err
}

// Who reaches no quorum leaves the queue. Who hears of none polls, and each attempt has the nodes that it reaches.
func TestWhoHasNoQuorumStandsInNobodysWay(t *testing.T) {
	t.Parallel()
	for what, cut := range map[string]func(l *lab.Net){
		"reaches none":  func(l *lab.Net) { l.All(lab.Refused) },
		"hears of none": func(l *lab.Net) { l.All(lab.RequestLost); l.All(lab.RequestLost, lab.OpRank) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			overNodes(t, 5, func(t *testing.T, m *nodeSet) {
				x := acquire(t, m.process().locks, "name")
				apart := m.process()
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = apart.locks.Acquire(ctx, "name") })
				synctest.Wait() // it is the first in line
				for _, l := range apart.links[:3] {
					cut(l)
				}
				life := driver.Recheck(ttl) + 50*time.Millisecond
				if what == "hears of none" {
					ok(t, x.Release(t.Context()))
					life = 3 * driver.PlaceLife(ttl)
				}
				time.Sleep(life)
				m.wantLine(0, m.stores[3:]...)
				if what == "reaches none" {
					order, took := m.serve(x, m.queue(1))
					if len(order) != 1 || took > driver.PlaceLife(ttl) { // what it has left where it cannot go
						t.Errorf("the other one: %v after %s", order, took)
					}
				}
				cancel()
				wg.Wait()
				apart.heal()
			})
		})
	}
}

// wantLine fails the test unless so many are in the queue at each of some nodes.
func (m *nodeSet) wantLine(n int, nodes ...*memlock.Store) {
	m.t.Helper()
	synctest.Wait()
	for i, s := range nodes {
		info, err := s.Inspect(m.t.Context(), "name")
		if ok(m.t, err); len(info.Line) != n {
			m.t.Errorf("node %d: %d in the queue, not %d", i, len(info.Line), n)
		}
	}
}

// A holder gets the name from a quorum, while the release of the last one is still on its way to the other nodes. Any node may
// forget it from then on, and nobody else has a quorum.
func TestAHolderIsSoonAtTheNodesThatHadNotHeardOfTheLastRelease(t *testing.T) {
	t.Parallel()
	for what, slow := range map[string]time.Duration{"it asks": 0, "it asks slowly": 5 * time.Millisecond, "it waits": 0} {
		overNodes(t, 5, func(t *testing.T, m *nodeSet) {
			last, next := m.holder("last"), m.process()
			last.links[3].Delay(9*time.Millisecond, 0)
			last.links[4].Delay(9*time.Millisecond, 0)
			next.links[4].Delay(slow, 0)
			c, got := next.claim("next"), make(chan error, 1)
			if what == "it waits" {
				go func() { got <- next.stands(c, ttl) }()
				synctest.Wait()
			}
			ok(t, last.store.Release(t.Context(), last.claim("last")))
			if what != "it waits" {
				got <- acquires(t, next, c)
			}
			ok(t, <-got)
			time.Sleep(50 * time.Millisecond)
			for i, s := range m.stores {
				if info, err := s.Inspect(t.Context(), "name"); err != nil || !info.Held || len(info.Line) > 0 {
					t.Errorf("%s, node %d: %+v, %v", what, i, info, err)
				}
			}
			next.heal()
			ok(t, next.store.Release(t.Context(), c))
			m.wantTaken(0)
			m.wantLine(0, m.stores...)
		})
	}
}
