package etcdlock_test

import (
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/etcdlock"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// What the tests of all backends ask in the same way.
var (
	acquire    = backendtest.Acquire
	ok         = backendtest.OK
	is         = backendtest.Is
	eventually = backendtest.Eventually
	renewed    = backendtest.Renewed
)

func TestMain(m *testing.M) {
	backendtest.AtOnce()
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t) // for all cases; each has a prefix of its own
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service { return at(t, server.Addr(), t.Name()+":") },
		OpenServers: func(t *testing.T) (drivertest.Service, drivertest.Servers) {
			own := servers.Etcd(t)
			return at(t, own.Addr(), "holdfast/"), drivertest.Servers{Kill: own.Kill, Restart: own.Restart}
		},
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.Etcd(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service { return at(t, server.Addr(), t.Name()+":") },
	}.Uneven(8))
}

// at is a service whose keys have a prefix.
func at(t *testing.T, addr, prefix string) drivertest.Service {
	t.Helper()
	other := dial(t, addr)
	store := func(addr string) driver.Driver { return etcdlock.New(dial(t, addr), etcdlock.WithPrefix(prefix)) }
	return drivertest.Service{
		Driver: func() driver.Driver { return store(addr) },
		Overwrite: func(name string) {
			_, err := other.Put(t.Context(), prefix+name, "bm90IGhvbGRmYXN0J3M=")
			ok(t, err)
		},
		Delete: func(name string) {
			_, err := other.Delete(t.Context(), prefix+name)
			ok(t, err)
		},
		Through: func() (driver.Driver, []*faultproxy.Proxy) {
			p := faultproxy.New(t, addr)
			return store(p.Addr()), []*faultproxy.Proxy{p}
		},
		Unreachable: func() driver.Driver { return store("127.0.0.1:1") },
		Holder:      addr + " " + prefix,
		Timeless:    true,
	}
}

// TestHolder is the process that the conformance suite freezes.
func TestHolder(t *testing.T) {
	t.Parallel()
	drivertest.Hold(t, func(holder string) driver.Driver {
		addr, prefix, _ := strings.Cut(holder, " ")
		return etcdlock.New(dial(t, addr), etcdlock.WithPrefix(prefix))
	})
}

// dial returns a client that ends with the test.
func dial(t *testing.T, addr string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop(), DialTimeout: time.Minute})
	ok(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// ttl of the leases that tests wait for the end of.
const ttl = 2 * time.Second

// locker returns a Locker that ends with the test.
func locker(t *testing.T, store *etcdlock.Store) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, store, longTTL)
}
