package memcachedlock_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

// Each case has a prefix of its own, as long as one may be.
func TestConformanceOnMemcached(t *testing.T) {
	t.Parallel()
	server := servers.Memcached(t)
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		s := at(t, server.Addr(), fmt.Sprintf("%s%d:", strings.Repeat("p", 45), 1000+cases.Add(1)))
		s.Own = func() drivertest.Config {
			own := servers.Memcached(t)
			s := at(t, own.Addr(), "holdfast:")
			s.Kill, s.Restart, s.Forgetful = own.Kill, own.Restart, true
			return s
		}
		return s
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.Memcached(t)
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		prefix := fmt.Sprintf("uneven-%d:", cases.Add(1))
		return process(t, server.Addr(), prefix).Uneven(at(t, server.Addr(), prefix))
	})
}

// at is a service whose keys have a prefix.
func at(t testing.TB, addr, prefix string) drivertest.Config {
	t.Helper()
	other := dial(t, addr)
	store := func(addr string) driver.Driver {
		return memcachedlock.New(dial(t, addr), memcachedlock.WithPrefix(prefix))
	}
	return drivertest.Config{
		Driver: func() driver.Driver { return store(addr) },
		Overwrite: func(name string) {
			ok(t, other.Set(&memcache.Item{Key: prefix + name, Value: []byte("not holdfast's")}))
		},
		Delete:      func(name string) { ok(t, other.Delete(prefix+name)) },
		Through:     process(t, addr, prefix).Through,
		Unreachable: func() driver.Driver { return store("127.0.0.1:1") },
	}
}

// process is one of those, over a link of its own.
func process(t testing.TB, addr, prefix string) backendtest.Process {
	t.Helper()
	return func() (driver.Driver, []*faultproxy.Proxy) {
		p := faultproxy.New(t, addr)
		return memcachedlock.New(dial(t, p.Addr()), memcachedlock.WithPrefix(prefix)), []*faultproxy.Proxy{p}
	}
}
