package memcachedlock_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/olddriver"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

// Each case has a prefix of its own, as long as one may be.
func TestConformanceOnMemcached(t *testing.T) {
	t.Parallel()
	server := servers.Memcached(t)
	var cases atomic.Int64
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service {
			return at(t, server.Addr(), fmt.Sprintf("%s%d:", strings.Repeat("p", 45), 1000+cases.Add(1)))
		},
		OpenServers: func(t *testing.T) (drivertest.Service, drivertest.Servers) {
			own := servers.Memcached(t)
			return at(t, own.Addr(), "holdfast:"), drivertest.Servers{Kill: own.Kill, Restart: own.Restart, Forgetful: true}
		},
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	server := servers.Memcached(t)
	var cases atomic.Int64
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service {
			return at(t, server.Addr(), fmt.Sprintf("uneven-%d:", cases.Add(1)))
		},
	}.Uneven(4))
}

// at is a service whose keys have a prefix.
func at(t *testing.T, addr, prefix string) drivertest.Service {
	t.Helper()
	other := dial(t, addr)
	store := func(addr string) driver.Driver {
		return memcachedlock.New(dial(t, addr), memcachedlock.WithPrefix(prefix))
	}
	return drivertest.Service{
		Driver: func() driver.Driver { return store(addr) },
		Overwrite: func(name string) {
			ok(t, other.Set(&memcache.Item{Key: prefix + name, Value: []byte("not holdfast's")}))
		},
		Delete: func(name string) { ok(t, other.Delete(prefix+name)) },
		Through: func() (driver.Driver, []*faultproxy.Proxy) {
			p := faultproxy.New(t, addr)
			return store(p.Addr()), []*faultproxy.Proxy{p}
		},
		Unreachable: func() driver.Driver { return store("127.0.0.1:1") },
		Holder:      addr + " " + prefix,
	}
}

// TestHolder is the process that the conformance suite freezes.
func TestHolder(t *testing.T) {
	t.Parallel()
	drivertest.Hold(t, func(holder string) driver.Driver {
		addr, prefix, _ := strings.Cut(holder, " ")
		return memcachedlock.New(dial(t, addr), memcachedlock.WithPrefix(prefix))
	})
}
