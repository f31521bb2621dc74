package servers

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
)

// freePort finds a port that nobody listens on.
//
// It is from outside every system's range of ephemeral ports. A client that dials a server
// which has been killed could otherwise be given the server's port as its own and be
// connected to itself, and the restarted server could find its port in use. The port of a
// Redis Cluster bus, 10000 above, is outside too.
func freePort() (int, error) {
	var failed error
	for range 100 {
		port := 11_000 + rand.IntN(11_000) //nolint:gosec // G404: a port is no secret
		var lc net.ListenConfig
		l, err := lc.Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		failed = err
	}
	return 0, failed
}
