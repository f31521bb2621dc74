package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// holder is a process that holds the name at every node.
func (m *nodeSet) holder(token string) *process {
	m.t.Helper()
	p := m.process()
	_, err := p.store.Acquire(m.t.Context(), p.claim(token))
	ok(m.t, err)
	m.wantTaken(len(m.stores))
	return p
}

func (p *process) renew() error {
	return p.store.Renew(p.m.t.Context(), []driver.Claim{p.claim("token")})[0]
}

// A node that forgets takes the lock, and its counter, from whoever holds the name, and before those who wait there: otherwise it
// would be lost to the holder for as long as anybody waits.
func TestALeaseOutlivesEveryNodesMemoryOneAtATime(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 4, 5} {
		overNodes(t, n, func(t *testing.T, m *nodeSet) {
			forgetting := make([]*node, n)
			nodes := m.wrapped(func(i int, n *node) { forgetting[i] = n })
			holder, next := m.over(nodes, redlock.WithFence()), m.over(nodes, redlock.WithFence())
			m.ahead(0, 1<<52)
			x := acquire(t, holder.locks, "name")
			got := backendtest.Next(t, next.locks, "name")
			for i := range 2 * n {
				synctest.Wait()
				if i >= n { // it forgets all that it has
					m.stores[i-n] = memlock.New()
					forgetting[i-n].Store(m.stores[i-n])
				} else {
					m.stores[i].Lose("name")
				}
				time.Sleep(ttl / 2) // one renewal at least
				m.wantTaken(n)
				ok(t, x.Err())
			}
			ok(t, x.Release(t.Context()))
			ok(t, <-got)
			y := acquire(t, next.locks, "name")
			backendtest.Grows(t, y.Fence(), x.Fence())
			ok(t, y.Release(t.Context()))
			m.wantTaken(0)
		})
	}
}

// Healings at one node go one after the other. One that is held up is not to hold up another
// until that one's grant is over.
func TestHealingsGoOneAfterTheOtherAndNoneBeginsAfterTheTenure(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p := m.process()
		var claims []driver.Claim
		for _, name := range []string{"one", "two"} {
			c := driver.Claim{Name: name, Token: "token", TTL: ttl}
			claims = append(claims, c)
			ok(t, acquires(t, p, c))
			synctest.Wait()
			p.flush(0)
		}
		p.links[0].Next(lab.OpAcquire, lab.HeldBack)
		for _, err := range p.store.Renew(t.Context(), claims) {
			ok(t, err)
		}
		synctest.Wait()
		ok(t, p.store.Renew(t.Context(), claims[:1])[0]) // no second one beside that which is under way
		time.Sleep(ttl)
		p.deliver()
		synctest.Wait()
		if n := p.links[0].Calls(lab.OpAcquire); n != 3 {
			t.Errorf("%d acquires; want one for each and one healing", n)
		}
	})
}

// Its acquire was executed, and the reply was lost. It renews, but is not known to have granted for long enough.
func TestANodeWhoseReplyWasLostCountsFromTheNextRenewalOn(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		overNodes(t, n, func(t *testing.T, m *nodeSet) {
			p := m.process()
			for _, l := range p.links[n/2+1:] {
				l.Next(lab.OpAcquire, lab.ReplyLost)
			}
			x := acquire(t, p.locks, "name")
			time.Sleep(2 * time.Second)
			p.links[0].All(lab.Refused) // one node is down, before the first renewal
			time.Sleep(15 * time.Second)
			ok(t, x.Err())
			ok(t, x.Release(t.Context()))
		})
	}
}
