package memcachedlock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

// service has a prefix for each room, as long as one may be.
var service = backendtest.Service{
	Start: func(t testing.TB) backendtest.Server { return servers.Memcached(t) },
	Open: func(t testing.TB, addr, room string) driver.Driver {
		return memcachedlock.New(dial(t, addr), memcachedlock.WithPrefix(prefixOf(room)))
	},
	Config: func(t testing.TB, addr, room string) drivertest.Config {
		other := dial(t, addr)
		return drivertest.Config{
			Overwrite: func(name string) {
				ok(t, other.Set(&memcache.Item{Key: prefixOf(room) + name, Value: []byte("not holdfast's")}))
			},
			Delete:      func(name string) { ok(t, other.Delete(prefixOf(room)+name)) },
			Unreachable: func() driver.Driver { return memcachedlock.New(dial(t, "127.0.0.1:1")) },
			Forgetful:   true,
		}
	},
}

func prefixOf(room string) string {
	return fmt.Sprintf("%s%s:", strings.Repeat("p", 49-len(room)), room)
}

func TestConformanceOnMemcached(t *testing.T) {
	t.Parallel()
	service.Run(t, servers.Memcached(t))
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	service.RunUneven(t, servers.Memcached(t))
}
