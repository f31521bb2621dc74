package servers

import "testing"

func TestSentinelsReplaceAMasterThatIsKilled(t *testing.T) {
	t.Parallel()
	s := Sentinel(t, "secret")
	dial(t, s.Addrs()[0]).do("PING", "-NOAUTH Authentication required.")
	s.AwaitMaster(s.Nodes[0])
	s.Nodes[0].Kill()
	s.AwaitMaster(s.Nodes[1])
	c := dial(t, s.Nodes[1].Addr())
	c.do("AUTH secret", "+OK")
	c.do("SET k v", "+OK")
}
