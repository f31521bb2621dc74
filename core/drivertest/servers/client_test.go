package servers

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

const (
	soon  = 10 * time.Second       // a bound for what must happen
	quiet = 100 * time.Millisecond // how long what must not happen is looked out for
)

// dial returns a connection that ends with the test.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, soon)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// wants sends a command to a Redis server, and wants this reply or error.
func wants(t *testing.T, addr, command, want string) {
	t.Helper()
	reply, err := ask(addr, strings.Fields(command)...)
	if err != nil {
		reply = err
	}
	if got := fmt.Sprint(reply); !strings.HasSuffix(got, want) {
		t.Fatalf("%s: received %q; want %q", command, got, want)
	}
}

func wantRefused(t *testing.T, addr string) {
	t.Helper()
	if conn, err := net.DialTimeout("tcp", addr, soon); err == nil {
		_ = conn.Close()
		t.Errorf("somebody still listens on %s", addr)
	}
}
