package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// operator is a process without links, since those cannot be looked through.
func (m *nodeSet) operator() *process {
	m.t.Helper()
	nodes := make([]driver.Driver, len(m.stores))
	for i, s := range m.stores {
		nodes[i] = s
	}
	return m.over(nodes)
}

// look is what the process knows of "name", and of how many names it lists.
func (p *process) look() (info inspect.LeaseInfo, listed int) {
	p.m.t.Helper()
	info, err := p.store.Inspect(p.m.t.Context(), "name")
	ok(p.m.t, err)
	for _, err := range p.store.Leases(p.m.t.Context(), "") {
		ok(p.m.t, err)
		listed++
	}
	return info, listed
}

func TestWhoHasAMajorityHoldsTheName(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		p := m.operator()
		m.squat(0, 1)
		if info, n := p.look(); info.Held || n > 0 || len(info.Nodes) != 5 || info.Nodes[0].Label != "squatter" || info.Nodes[2].Held {
			t.Errorf("a minority has it: %+v, and %d are listed", info, n)
		}
		x := acquire(t, p.locks, "name", core.WithLabel("who"))
		synctest.Wait()
		info, n := p.look()
		if !info.Held || n != 1 || info.Label != "who" || info.Kind != inspect.HoldExclusive || info.Remaining <= ttl/2 || info.Remaining > ttl {
			t.Errorf("a majority has it: %+v, and %d are listed", info, n)
		}
		if n := info.Nodes; len(n) != 5 || n[1].Label != "squatter" || n[2].Label != "who" || n[2].Handle != info.Handle {
			t.Errorf("they disagree: %+v", n)
		}
		m.stores[2].Steal("name")
		if info, n := p.look(); info.Held || n > 0 {
			t.Errorf("nobody has a majority: %+v, and %d are listed", info, n)
		}
		<-x.Context().Done()
	})
}

// What a slow node would say is not waited for.
func TestAMinorityThatIsDownHidesNothing(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		p, operator := m.process(), m.operator()
		x := acquire(t, p.locks, "name")
		acquire(t, p.locks, "another")
		synctest.Wait()
		m.stores[0].SetDown(true)
		m.stores[1].SetDelay(time.Hour)
		began := time.Now()
		info, n := operator.look()
		silent := func(node int) bool { return info.Nodes[node].Silent }
		if !info.Held || n != 2 || !silent(0) || !silent(1) || silent(4) || time.Since(began) > time.Second {
			t.Errorf("after %s: %+v, and %d are listed", time.Since(began), info, n)
		}
		for _, err := range operator.store.Leases(t.Context(), "") {
			ok(t, err)
			break
		}
		ok(t, operator.store.Evict(t.Context(), "name", info.Handle))
		<-x.Context().Done()
		is(t, x.Err(), core.ErrLost)
		m.stores[1].SetDown(true)
		m.stores[2].SetDown(true)
		_, err := operator.store.Inspect(t.Context(), "name")
		isUnknown(t, err)
		isUnknown(t, operator.store.Evict(t.Context(), "name", info.Handle))
		for _, err := range operator.store.Leases(t.Context(), "") {
			isUnknown(t, err)
		}
	})
}

func TestNodesThatCannotTellAreNamed(t *testing.T) {
	t.Parallel()
	nodes := memory(3)
	for i, node := range nodes {
		nodes[i] = struct{ driver.Driver }{node}
	}
	_, err := redlock.New(nodes).Inspect(t.Context(), "name")
	isUnknown(t, err)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
