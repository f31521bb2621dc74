package memcachedlock_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

func TestAnErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for want, address := range map[string]func(*testing.T) string{
		"the client's DialContext sends them": func(t *testing.T) string {
			users := filepath.Join(t.TempDir(), "users")
			ok(t, os.WriteFile(users, []byte("app:hunter2\n"), 0o600))
			return servers.Memcached(t, "-Y", users).Addr()
		},
		"TLS or the binary protocol":        func(t *testing.T) string { return servers.Memcached(t, "-B", "binary").Addr() },
		"no memcached: check host and port": func(t *testing.T) string { return servers.Redis(t).Addr() },
		"ServerList.SetServers says which":  func(*testing.T) string { return "127.0.0.1:no-such-port" },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			backendtest.Tells(t, locker(t, dial(t, address(t))), want)
		})
	}
}

// sending keeps what is sent on a connection.
type sending struct {
	net.Conn
	sent *bytes.Buffer
}

func (s sending) Write(b []byte) (int, error) {
	s.sent.Write(b)
	return s.Conn.Write(b)
}

// twemproxy closes the connection of a command with such a number.
func TestAReleaseHasNoNumberBelowZero(t *testing.T) {
	t.Parallel()
	mc, sent := dial(t, servers.Memcached(t).Addr()), new(bytes.Buffer)
	mc.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return sending{conn, sent}, err
	}
	s := memcachedlock.New(mc)
	grant(t, s, claim("name", "token"))
	ok(t, s.Release(t.Context(), claim("name", "token")))
	if text := sent.String(); !strings.Contains(text, "\ncas ") || strings.Contains(text, " -") {
		t.Errorf("%q", text)
	}
}
