package servers

import (
	"net"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/internal/port"
)

// freePort finds a port that nobody listens on. It is the test's until its end.
func freePort(tb testing.TB) (int, error) {
	tb.Helper()
	l, err := port.Listen(tb, port.Servers)
	if err != nil {
		return 0, err
	}
	addr, _ := l.Addr().(*net.TCPAddr)
	return addr.Port, l.Close()
}
