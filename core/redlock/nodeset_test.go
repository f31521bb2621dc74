package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

const ttl = 10 * time.Second

// nodeSet is some nodes in virtual time.
type nodeSet struct {
	t      *testing.T
	stores []*memlock.Store
}

// overNodes runs f in a bubble.
func overNodes(t *testing.T, nodes int, f func(t *testing.T, m *nodeSet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &nodeSet{t: t}
		for range nodes {
			m.stores = append(m.stores, memlock.New())
		}
		f(t, m)
		time.Sleep(time.Minute) // what is under way must end in the bubble
	})
}

// process is one that has a link of its own to every node.
type process struct {
	m     *nodeSet
	links []*lab.Net
	store *redlock.Store
	locks *core.Locker
}

func (m *nodeSet) process(opts ...redlock.Option) *process {
	m.t.Helper()
	nodes, links := make([]driver.Driver, len(m.stores)), make([]*lab.Net, len(m.stores))
	for i, s := range m.stores {
		links[i] = lab.New(s)
		nodes[i] = links[i]
	}
	p := m.over(nodes, opts...)
	p.links = links
	return p
}

// over is a process that has these nodes.
func (m *nodeSet) over(nodes []driver.Driver, opts ...redlock.Option) *process {
	m.t.Helper()
	store := redlock.New(nodes, opts...)
	return &process{m: m, store: store, locks: backendtest.Locker(m.t, store, ttl)}
}

// next decides the fates of the next call of a kind at each node.
func (p *process) next(op lab.Op, fates ...lab.Fate) {
	for i, f := range fates {
		p.links[i].Next(op, f)
	}
}

func (p *process) deliver() {
	for _, l := range p.links {
		l.Deliver()
	}
}

func (p *process) claim(token string) driver.Claim {
	return driver.Claim{Name: "name", Token: token, TTL: ttl}
}

// flush has a node forget what this process has last asked it for.
func (p *process) flush(node int) {
	p.m.t.Helper()
	ok(p.m.t, p.m.stores[node].Release(p.m.t.Context(), p.links[node].LastClaim()))
}

// taken says at how many nodes somebody has the name.
func (m *nodeSet) taken() (n int) {
	m.t.Helper()
	for _, s := range m.stores {
		probe := driver.Claim{Name: "name", Token: "probe", TTL: time.Second}
		if _, err := s.Acquire(m.t.Context(), probe); err == nil {
			ok(m.t, s.Release(m.t.Context(), probe))
			continue
		}
		n++
	}
	return n
}

func (m *nodeSet) wantTaken(want int) {
	m.t.Helper()
	synctest.Wait()
	if n := m.taken(); n != want {
		m.t.Errorf("taken at %d nodes; want %d", n, want)
	}
}

// squat has somebody else take the name at some nodes.
func (m *nodeSet) squat(nodes ...int) {
	m.t.Helper()
	for _, i := range nodes {
		_, err := m.stores[i].Acquire(m.t.Context(), driver.Claim{Name: "name", Token: "squatter", Label: "squatter", TTL: time.Hour})
		ok(m.t, err)
	}
}

// isUnknown fails the test unless err leaves the outcome open.
func isUnknown(t *testing.T, err error) {
	t.Helper()
	_, held := errors.AsType[*driver.Held](err)
	if err == nil || held || errors.Is(err, driver.ErrNotOwner) || errors.Is(err, driver.ErrNotSent) {
		t.Errorf("%v; want an unknown outcome", err)
	}
}

func short(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
