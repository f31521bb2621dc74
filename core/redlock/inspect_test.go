package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// operator is a process without links, since those cannot be looked through.
func (m *nodeSet) operator(opts ...redlock.Option) *process {
	m.t.Helper()
	nodes := make([]driver.Driver, len(m.stores))
	for i, s := range m.stores {
		nodes[i] = s
	}
	return m.over(nodes, opts...)
}

// look is what the process knows of "name".
func (p *process) look() inspect.LeaseInfo {
	p.m.t.Helper()
	info, err := p.store.Inspect(p.m.t.Context(), "name")
	ok(p.m.t, err)
	return info
}

func TestWhoHasAMajorityHoldsTheName(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		p := m.operator()
		if info := p.look(); info.Held || info.Nodes != nil {
			t.Errorf("a free name: %+v", info)
		}
		m.squat(0, 1)
		if info := p.look(); info.Held || len(info.Nodes) != 5 || info.Nodes[0].Label != "squatter" || info.Nodes[2].Held {
			t.Errorf("a minority has it: %+v", info)
		}
		x, err := p.locks.Acquire(t.Context(), "name", core.WithLabel("who"))
		ok(t, err)
		synctest.Wait()
		info := p.look()
		if !info.Held || info.Label != "who" || info.Kind != inspect.HoldExclusive || info.Fence != 0 || info.Remaining <= ttl/2 || info.Remaining > ttl {
			t.Errorf("a majority has it: %+v", info)
		}
		if n := info.Nodes; len(n) != 5 || n[1].Label != "squatter" || n[2].Label != "who" || n[2].Handle != info.Handle {
			t.Errorf("they disagree: %+v", n)
		}
		m.stores[2].Steal("name")
		if info := p.look(); info.Held {
			t.Errorf("nobody has a majority: %+v", info)
		}
		<-x.Context().Done()
	})
}

func TestAMinorityThatIsDownHidesNothing(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		p, operator := m.process(), m.operator()
		x, err := p.locks.Acquire(t.Context(), "name")
		ok(t, err)
		synctest.Wait()
		m.stores[0].SetDown(true)
		m.stores[1].SetDown(true)
		info := operator.look()
		if !info.Held || !info.Nodes[0].Silent || info.Nodes[4].Silent || info.Fence != 0 { // one that a node has minted for itself is nobody's here
			t.Errorf("%+v", info)
		}
		ok(t, operator.store.Evict(t.Context(), "name", info.Handle))
		<-x.Context().Done()
		is(t, x.Err(), core.ErrLost)
		m.stores[2].SetDown(true)
		_, err = operator.store.Inspect(t.Context(), "name")
		isUnknown(t, err)
		isUnknown(t, operator.store.Evict(t.Context(), "name", info.Handle))
		for _, err := range operator.store.Leases(t.Context(), "") {
			isUnknown(t, err)
		}
	})
}

// What a slow node would say is not waited for.
func TestALookDoesNotWaitForASilentNode(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		m.stores[2].SetDelay(time.Hour)
		began := time.Now()
		if info := m.operator().look(); !info.Nodes[2].Silent || time.Since(began) > time.Second {
			t.Errorf("after %s: %+v", time.Since(began), info)
		}
		m.stores[2].SetDelay(0)
	})
}

func TestTheNamesThatAMajorityHasAreListedOnce(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		p := m.operator()
		for i := range 50 {
			_, err := p.locks.Acquire(t.Context(), fmt.Sprint("order:", i))
			ok(t, err)
		}
		_, err := p.locks.Acquire(t.Context(), "other")
		ok(t, err)
		m.squat(0, 1) // a minority
		synctest.Wait()
		m.stores[4].SetDown(true)
		var names []string
		for info, err := range p.store.Leases(t.Context(), "order:") {
			ok(t, err)
			names = append(names, info.Name)
		}
		slices.Sort(names)
		if len(slices.Compact(names)) != 50 || len(names) != 50 {
			t.Errorf("%d names: %v", len(names), names)
		}
		for _, err := range p.store.Leases(t.Context(), "") {
			ok(t, err)
			break
		}
		m.stores[4].SetDown(false)
	})
}

// blind is a node that cannot tell who holds what.
type blind struct{ driver.Driver }

func TestNodesThatCannotTellAreNamed(t *testing.T) {
	t.Parallel()
	nodes := memory(3)
	for i := range nodes {
		nodes[i] = blind{nodes[i]}
	}
	_, err := redlock.New(nodes).Inspect(t.Context(), "name")
	isUnknown(t, err)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
