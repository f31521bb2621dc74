package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// fenced is a process with a link to every node, whose leases have fences.
func (m *nodeSet) fenced() *process { return m.process(redlock.WithFence()) }

// ahead has the counter of a node run far ahead of the others, as if its clock did.
func (m *nodeSet) ahead(node int, fence uint64) {
	m.t.Helper()
	c := driver.Claim{Name: "another name", Token: "token", TTL: time.Second}
	_, err := m.stores[node].AcquireRanked(m.t.Context(), ranked.Claim{Claim: c, Floor: fence})
	ok(m.t, err)
	ok(m.t, m.stores[node].Release(m.t.Context(), c))
}

// granted is one by a process, with nodes that it does not reach.
func (p *process) granted(without ...int) (fence uint64) {
	p.m.t.Helper()
	for _, i := range without {
		p.links[i].All(lab.Refused)
	}
	x := acquire(p.m.t, p.locks, "name")
	ok(p.m.t, x.Release(p.m.t.Context()))
	synctest.Wait()
	p.heal()
	return x.Fence()
}

// A node had counted on from the lease's fence, and has lost its memory since. Asked again, it takes part once more.
func TestAQuorumCountsOnFromTheFenceOfWhoAsksAgain(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		forgets := newNode(m.stores[1])
		linked := func() *process {
			p := m.fenced()
			nodes := make([]driver.Driver, 5)
			p.links[1] = lab.New(forgets)
			for i, l := range p.links {
				nodes[i] = l
			}
			q := m.over(nodes, redlock.WithFence())
			q.links = p.links
			return q
		}
		p, q := linked(), linked()
		m.ahead(0, 1<<52)
		c := p.claim("token")
		var last uint64
		for _, without := range [][]int{{3, 4}, {0, 2}} {
			for _, i := range without {
				p.links[i].All(lab.Refused)
			}
			g, err := p.store.Acquire(t.Context(), c)
			ok(t, err)
			last = g.Fence
			synctest.Wait()
			p.heal()
			if without[0] == 3 {
				forgets.Store(memlock.New())
			}
		}
		ok(t, p.store.Release(t.Context(), c))
		if fence := q.granted(0, 2); fence <= last {
			t.Errorf("fence %d after %d", fence, last)
		}
	})
}
