// Package port finds ports for servers and proxies that tests end and start again.
package port

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Range is where ports are looked for. It is outside every system's range of ephemeral ports. Otherwise a client that
// dials a port whose server has ended could be given that same port as its own and be connected to itself, or another
// process could be given it before the server listens again.
type Range struct{ first, number int }

// The bus of a Redis Cluster's node has its port 10,000 above the node's: it is between the two.
var (
	Servers = Range{11_000, 5_500}
	Proxies = Range{26_500, 6_000}
)

// Listen listens on a port of r that nobody else uses. Until the test ends, a UDP socket keeps the port: others,
// in this process and in other ones, would take it while nobody listens.
func Listen(tb testing.TB, r Range) (net.Listener, error) {
	tb.Helper()
	var failed error
	for range 100 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(r.first+rand.IntN(r.number))) //nolint:gosec // G404: no secret
		var lc net.ListenConfig
		var kept net.PacketConn
		if kept, failed = lc.ListenPacket(context.Background(), "udp", addr); failed != nil {
			continue
		}
		var l net.Listener
		if l, failed = lc.Listen(context.Background(), "tcp", addr); failed == nil {
			tb.Cleanup(func() { _ = kept.Close() })
			return l, nil
		}
		_ = kept.Close()
	}
	return nil, failed
}
