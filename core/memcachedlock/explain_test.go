package memcachedlock_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
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

// twemproxy closes the connection of a command with such a number.
func TestAReleaseHasNoNumberBelowZero(t *testing.T) {
	t.Parallel()
	mc := dial(t, servers.Memcached(t).Addr())
	var release []byte
	eachWrite(mc, func(b []byte) {
		if bytes.HasPrefix(b, []byte("cas ")) {
			release = bytes.Clone(b)
		}
	})
	locks := locker(t, mc)
	x, err := locks.TryAcquire(t.Context(), "name")
	ok(t, err)
	ok(t, x.Release(t.Context()))
	if release == nil || bytes.Contains(release, []byte(" -")) {
		t.Errorf("%q", release)
	}
}
