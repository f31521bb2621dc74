package servers

import "testing"

func TestAClusterServesAllSlotsAndMovesThem(t *testing.T) {
	t.Parallel()
	c := Cluster(t)
	a, b := c.Nodes[0], c.Nodes[1]
	wants(t, a.Addr(), "SET 123456789 v", "MOVED 12739 "+c.Nodes[2].Addr())
	wants(t, a.Addr(), "SET {06S} v", "OK") // slot 0
	c.BeginMove(0, a, b)
	if n := c.MoveKeys(0, 1, a, b); n != 1 {
		t.Fatalf("%d keys moved", n)
	}
	wants(t, a.Addr(), "GET {06S}", "ASK 0 "+b.Addr())
	c.EndMove(0, a, b)
	wants(t, b.Addr(), "GET {06S}", "v")
	if got := c.Owner(0); got != b {
		t.Errorf("the owner is %s", got.Addr())
	}
}
