package servers

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// freePort finds a port that nobody listens on.
//
// It is from outside every system's range of ephemeral ports. A client that dials a server
// which has been killed could otherwise be given the server's port as its own and be
// connected to itself, and the restarted server could find its port in use. The port of a
// Redis Cluster bus, 10000 above, is outside too, and below those of faultproxy.
//
// A UDP socket keeps the port until the test ends: the server of another test, in this process or in another one, would
// take it while this one is down.
func freePort(tb testing.TB) (int, error) {
	tb.Helper()
	var failed error
	for range 100 {
		port := 11_000 + rand.IntN(5_500) //nolint:gosec // G404: a port is no secret
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		var lc net.ListenConfig
		var kept net.PacketConn
		if kept, failed = lc.ListenPacket(context.Background(), "udp", addr); failed != nil {
			continue
		}
		var l net.Listener
		if l, failed = lc.Listen(context.Background(), "tcp", addr); failed == nil {
			tb.Cleanup(func() { _ = kept.Close() })
			return port, l.Close()
		}
		_ = kept.Close()
	}
	return 0, failed
}
