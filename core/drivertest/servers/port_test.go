package servers

import (
	"net"
	"slices"
	"strconv"
	"testing"
)

// Others look for a port in the same way: theirs is one that nobody has a UDP socket at.
func TestThePortOfAServerThatIsDownIsKept(t *testing.T) {
	t.Parallel()
	s := Redis(t)
	s.Kill()
	if c, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", s.Addr()); err == nil {
		_ = c.Close()
		t.Errorf("%s is free", s.Addr())
	}
	s.Restart()
	ports := freePorts(t, 50)
	slices.Sort(ports)
	if mine, _ := strconv.Atoi(s.Addr()[len("127.0.0.1:"):]); len(slices.Compact(ports)) < 50 || slices.Contains(ports, mine) {
		t.Errorf("a port was given twice: %d beside %v", mine, ports)
	}
}
