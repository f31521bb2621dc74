package servers

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

var errNotYet = errors.New("not yet")

func TestAMasterJoinsAClusterAndLeavesIt(t *testing.T) {
	t.Parallel()
	c := Cluster(t)
	old, joined := c.Nodes[0], c.Add()
	dial(t, old.Addr()).do("SET {06S} v", "+OK") // slot 0
	c.MoveSlots([]int{0, 1}, old, joined)
	dial(t, joined.Addr()).do("GET {06S}", "$1", "v")
	c.MoveSlots([]int{0, 1}, joined, old)
	c.Remove(joined)
	dial(t, old.Addr()).do("GET {06S}", "$1", "v")
}

func TestAReplicaIsPromotedInAgreementWithItsMaster(t *testing.T) {
	t.Parallel()
	c := Cluster(t)
	old := c.Nodes[0]
	next := c.Replica(old)
	c.Promote(next)
	c.eventually("it serves", func() error {
		if !c.serves(next, 0) {
			return errNotYet
		}
		return nil
	})
	if got := c.Replica(next); got != old {
		t.Errorf("%s follows", got.Addr())
	}
}

func TestNodesBehindFrontsAreCutOffFromOneAnother(t *testing.T) {
	t.Parallel()
	fronts := make(map[string]*faultproxy.Proxy) // by what stands behind them
	c := ClusterBehind(t, func(addr string) string {
		fronts[addr] = faultproxy.New(t, addr)
		return fronts[addr].Addr()
	})
	old, next := c.Nodes[0], c.Nodes[3]
	dial(t, c.Nodes[1].Addr()).do("SET {06S} v", "-MOVED 0 "+old.Announced())
	for _, n := range c.Nodes[1:] {
		for _, way := range []string{old.Addr(), old.BusAddr()} {
			fronts[way].BlackHoleFrom(n.Source(), true)
		}
		for _, way := range []string{n.Addr(), n.BusAddr()} {
			fronts[way].BlackHoleFrom(old.Source(), true)
		}
	}
	c.eventually("its replica takes over", func() error {
		if !c.serves(next, 0) {
			return errNotYet
		}
		return nil
	})
	dial(t, next.Addr()).do("SET {06S} v", "+OK")
	c.eventually("who is cut off gives up", func() error {
		said, err := ask(old.Addr(), "SET", "{06S}", "v")
		if err == nil {
			t.Logf("it still says %v", said)
			return errNotYet
		}
		return nil
	})
	for _, p := range fronts {
		p.Heal()
	}
	c.AwaitComplete()
	if got := c.Replica(next); got != old {
		t.Errorf("%s follows", got.Addr())
	}
}
