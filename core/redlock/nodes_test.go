package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// node is one with faults of its own.
type node struct {
	atomic.Pointer[memlock.Store]
	most   time.Duration                                                                // that it grants, if not 0
	around func(ctx context.Context, op lab.Op, call func(context.Context) error) error // nil: nothing
	can    *driver.Capabilities                                                         // nil: the Store's
}

func newNode(s *memlock.Store) *node {
	n := &node{}
	n.Store(s)
	return n
}

func (n *node) do(ctx context.Context, op lab.Op, call func(context.Context) error) error {
	if n.around == nil {
		return call(ctx)
	}
	return n.around(ctx, op, call)
}

func (n *node) bound(c driver.Claim) driver.Claim {
	if n.most > 0 {
		c.TTL = min(c.TTL, n.most)
	}
	return c
}

func (n *node) Capabilities() driver.Capabilities {
	if n.can != nil {
		return *n.can
	}
	return n.Load().Capabilities()
}

func (n *node) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return n.AcquireRanked(ctx, ranked.Claim{Claim: c})
}

func (n *node) AcquireRanked(ctx context.Context, c ranked.Claim) (g driver.Grant, err error) {
	err = n.do(ctx, lab.OpAcquire, func(ctx context.Context) (err error) {
		c.Claim = n.bound(c.Claim)
		if g, err = n.Load().AcquireRanked(ctx, c); n.most > 0 {
			g.TTL, g.Longest = c.TTL, c.TTL
		}
		return err
	})
	return g, err
}

func (n *node) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return n.Load().Wait(ctx, c)
}

func (n *node) WaitRanked(ctx context.Context, c ranked.Claim) error {
	return n.do(ctx, lab.OpWait, func(ctx context.Context) error { return n.Load().WaitRanked(ctx, c) })
}

func (n *node) Rank(ctx context.Context, name string) (rank uint64, err error) {
	err = n.do(ctx, lab.OpRank, func(ctx context.Context) (err error) { rank, err = n.Load().Rank(ctx, name); return err })
	return rank, err
}

func (n *node) Renew(ctx context.Context, claims []driver.Claim) (errs []error) {
	own := append([]driver.Claim(nil), claims...)
	for i := range own {
		own[i] = n.bound(own[i])
	}
	if err := n.do(ctx, lab.OpRenew, func(ctx context.Context) error { errs = n.Load().Renew(ctx, own); return nil }); err != nil {
		return []error{err}
	}
	return errs
}

func (n *node) Release(ctx context.Context, c driver.Claim) error {
	return n.do(ctx, lab.OpRelease, func(ctx context.Context) error { return n.Load().Release(ctx, c) })
}

// wrapped are the nodes of m, each with faults.
func (m *nodeSet) wrapped(faults func(i int, n *node)) []driver.Driver {
	nodes := make([]driver.Driver, len(m.stores))
	for i, s := range m.stores {
		n := newNode(s)
		faults(i, n)
		nodes[i] = n
	}
	return nodes
}

// jittery is a node whose requests and answers take any time up to 4 ms, a few of them ten times as long: one packet was lost. So they
// overtake each other.
func jittery(s *memlock.Store) *node {
	lag := func() {
		d := rand.N(4 * time.Millisecond)
		if rand.N(5) == 0 {
			d *= 10
		}
		time.Sleep(d)
	}
	n := newNode(s)
	n.around = func(ctx context.Context, op lab.Op, call func(context.Context) error) error {
		defer lag()
		if lag(); op != lab.OpWait {
			ctx = context.WithoutCancel(ctx)
		}
		return call(ctx)
	}
	return n
}

// says has a node answer acquires and renewals with an error.
func says(err error) func(context.Context, lab.Op, func(context.Context) error) error {
	return func(ctx context.Context, op lab.Op, call func(context.Context) error) error {
		if err != nil && (op == lab.OpAcquire || op == lab.OpRenew) {
			return err
		}
		return call(ctx)
	}
}

func TestWhatCannotWorkIsRefusedByNew(t *testing.T) {
	t.Parallel()
	a, b, c := memlock.New(), memlock.New(), memlock.New()
	var none *memlock.Store
	quorum := func(nodes ...driver.Driver) driver.Driver { return redlock.New(nodes) }
	backendtest.RefusedByNew(t, map[string]driver.Driver{
		"0 nodes":                   quorum(),
		"1 nodes":                   quorum(a),
		"2 nodes":                   quorum(a, b),
		"node 2 is nil":             quorum(a, b, nil),
		"node 1 is nil":             quorum(a, none, c),
		"nodes 0 and 2 are the":     quorum(a, b, a),
		"node 1: redlock: 2 nodes:": quorum(a, redlock.New([]driver.Driver{b, c}), c),
	})
	_, err := core.New(redlock.New([]driver.Driver{odd{a, []int{1}}, odd{b, nil}, odd{c, nil}}))
	ok(t, err)
	// Only nodes that count from a floor have fences.
	rdb := dial(t, "127.0.0.1:1")
	_, err = core.New(redlock.New([]driver.Driver{redislock.New(rdb), redislock.New(rdb), struct{ driver.Driver }{a}}, redlock.WithFence()))
	is(t, err, core.ErrInvalid)
}

// odd is a node that cannot be compared.
type odd struct {
	*memlock.Store
	_ []int
}

func TestTheNodesBoundWhatItCan(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		nodes := m.wrapped(func(i int, n *node) {
			n.can = &[]driver.Capabilities{
				{Fence: true, Dedup: true, Block: true, MinTTL: time.Second, MaxName: 100},
				{Fence: true, Dedup: true, Block: true, MinTTL: 2 * time.Second},
				{Fence: true, Dedup: true, Block: true, MaxName: 50},
			}[i]
		})
		want := driver.Capabilities{Backend: "redlock", Punctual: true, Hears: true, Queue: true, MinTTL: 2 * time.Second, MaxName: 50}
		if can := redlock.New(nodes).Capabilities(); can != want {
			t.Errorf("%+v; want %+v", can, want)
		}
	})
}

func TestValidityIsTheShortestOfTheBestQuorum(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ttls []int // in seconds
		want int
	}{
		{[]int{1, 9, 2, 8, 7}, 7}, {[]int{1, 2, 99, 99, 99}, 10}, {[]int{4, 3, 2, 1}, 2},
	} {
		overNodes(t, len(c.ttls), func(t *testing.T, m *nodeSet) {
			p := m.over(m.wrapped(func(i int, n *node) { n.most = time.Duration(c.ttls[i]) * time.Second }))
			for range 2 { // asked again, it is the same
				g, err := p.store.Acquire(t.Context(), p.claim("token"))
				if ok(t, err); g.TTL != time.Duration(c.want)*time.Second {
					t.Errorf("%v: %s", c.ttls, g.TTL)
				}
			}
		})
	}
}

// Of five nodes two grant less than the other three promise. They are no help when one of
// those three is gone.
func TestANodeThatGrantsLessThanWasPromisedDoesNotCount(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		var last *node
		p := m.over(m.wrapped(func(i int, n *node) {
			n.most = []time.Duration{2 * time.Second, 2 * time.Second, time.Hour, time.Hour, time.Hour}[i]
			last = n
		}))
		ok(t, acquires(t, p, p.claim("token")))
		m.wantTaken(5)
		ok(t, p.renew())
		last.around = says(driver.ErrCannotAnswer)
		isUnknown(t, p.renew())
	})
}

func TestAQuorumCannotAnswerOnlyIfNoNodeDoes(t *testing.T) {
	t.Parallel()
	denied, down := driver.Refused(errors.New("NOPERM")), driver.ErrCannotAnswer
	for what, c := range map[string]struct {
		says            [3]error // nil is a node that works
		outage, refused bool     // nobody answers; nobody will before somebody mends it
	}{
		"all are down":                 {says: [3]error{down, down, down}, outage: true},
		"most are down":                {says: [3]error{down, nil, down}, outage: true},
		"one forbids, others are down": {says: [3]error{down, denied, down}},
		"one is down, others forbid":   {says: [3]error{denied, down, denied}, refused: true},
		"one has another holder":       {says: [3]error{down, &driver.Held{}, down}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			overNodes(t, 3, func(t *testing.T, m *nodeSet) {
				p := m.over(m.wrapped(func(i int, n *node) {
					n.around, n.can = says(c.says[i]), &driver.Capabilities{Location: fmt.Sprint("host:", i)}
				}))
				err := acquires(t, p, p.claim("token"))
				if err == nil || driver.Explain(err).Nobody != c.outage || errors.Is(err, driver.ErrRefused) != c.refused {
					t.Errorf("acquire: %v", err)
				}
				for i, said := range c.says { // in one line
					if said != nil && driver.Explain(err).Held == nil && !strings.Contains(err.Error(), fmt.Sprintf("node %d at host:%d: %v", i, i, said)) || strings.Contains(err.Error(), "\n") {
						t.Errorf("%v does not say %q of node %d", err, said, i)
					}
				}
				probe := p.claim("token")
				probe.TTL = 0
				if err := p.store.Renew(t.Context(), []driver.Claim{probe})[0]; driver.Explain(err).Nobody && !c.outage && errors.Is(c.says[1], denied) {
					t.Errorf("a probe: %v", err)
				}
			})
		})
	}
}

// A release that is confirmed frees the name, whatever of earlier commands is on its way still. Who was refused before that,
// and asks again, is not told of its own first attempt.
func TestNobodyIsToldHeldAfterAConfirmedReleaseWhereMessagesOvertakeEachOther(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		late := func() *process {
			nodes := make([]driver.Driver, len(m.stores))
			for i, s := range m.stores {
				nodes[i] = jittery(s)
			}
			return m.over(nodes, redlock.WithFence())
		}
		a, b := late(), late()
		for turn := range 500 {
			held, c := a.claim(fmt.Sprint("a", turn)), b.claim(fmt.Sprint("b", turn))
			ok(t, a.stands(held, ttl))
			if turn%2 == 0 {
				isHeld(t, acquires(t, b, c))
			} else {
				if b.stands(c, 50*time.Millisecond) == nil {
					t.Fatal("two holders")
				}
				_ = b.store.Release(t.Context(), c) // it leaves the queue, and owns nothing
			}
			ok(t, a.store.Release(t.Context(), held))
			c.Token += "again"
			if err := acquires(t, b, c); err != nil {
				t.Errorf("turn %d: %v", turn, err)
				continue
			}
			ok(t, b.store.Release(t.Context(), c))
		}
	})
}

// A call that core has left behind may open a vote that another call is ending.
func TestCallsOfOneTokenDoNotWaitForEachOtherForEver(t *testing.T) {
	t.Parallel()
	store := redlock.New(memory(3))
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := range 3000 {
			claim := driver.Claim{Name: "name", Token: fmt.Sprint("token-", i), TTL: time.Minute}
			var calls sync.WaitGroup
			for range 2 {
				calls.Go(func() { _, _ = store.Acquire(t.Context(), claim) })
				calls.Go(func() { _ = store.Release(t.Context(), claim) })
			}
			calls.Wait()
			_ = store.Release(t.Context(), claim)
		}
	}()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("nothing goes on")
	}
	ok(t, store.Close(t.Context()))
}
