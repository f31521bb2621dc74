package servers

import (
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

func TestWhoStandsBehindAFrontIsReachedThroughIt(t *testing.T) {
	t.Parallel()
	fronts := make(map[string]*faultproxy.Proxy)
	s := SentinelBehind(t, func(addr string) string {
		p := faultproxy.New(t, addr)
		fronts[p.Addr()] = p
		return p.Addr()
	}, "secret")
	old, next := s.Nodes[0], s.Nodes[1]
	s.AwaitMaster(old)
	fronts[old.Announced()].BlackHoleFrom(next.Source(), true)
	for _, w := range s.Sentinels {
		fronts[old.Announced()].BlackHoleFrom(w.Source(), true)
	}
	s.AwaitMaster(next)
	for _, n := range s.Nodes { // who is cut off does not know
		c := dial(t, n.Addr())
		c.do("AUTH secret", "+OK")
		c.do("SET k v", "+OK")
	}
	if old.Announced() == old.Addr() || next.Announced() == next.Addr() {
		t.Error("a server is announced by its own address")
	}
}
