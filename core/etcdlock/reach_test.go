package etcdlock

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// full is an etcd whose database has reached its quota.
func full(t *testing.T) string {
	t.Helper()
	addr := servers.Etcd(t, "--quota-backend-bytes", "1000000").Addr()
	value := strings.Repeat("x", 1<<19)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		_, err = dial(t, addr).Put(t.Context(), "large", value)
	}
	return addr
}

func TestAnErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for want, address := range map[string]func(*testing.T) string{
		"127.0.0.1:1: connect: connection refused": func(*testing.T) string { return "127.0.0.1:1" },
		"check the endpoints and the TLS":          func(t *testing.T) string { return servers.Redis(t).Addr() },
		"alarm disarm":                             full,
		"etcd wants a user": func(t *testing.T) string {
			addr := servers.Etcd(t).Addr()
			secure(t, dial(t, addr))
			return addr
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			backendtest.Tells(t, locker(t, New(dial(t, address(t)))), want)
		})
	}
}
