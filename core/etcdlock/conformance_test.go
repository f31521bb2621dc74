package etcdlock_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

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
	waits      = backendtest.InVain
)

func TestMain(m *testing.M) {
	backendtest.AtOnce()
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t) // for all cases; each has a prefix of its own
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		s := at(t, server.Addr(), t.Name()+":")
		s.Own = func() drivertest.Config {
			own := servers.Etcd(t)
			s := at(t, own.Addr(), "holdfast/")
			s.Kill, s.Restart = own.Kill, own.Restart
			return s
		}
		return s
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.Etcd(t)
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		prefix := t.Name() + ":"
		return process(t, server.Addr(), prefix).Uneven(at(t, server.Addr(), prefix))
	})
}

// Leases and waiters of a user with a password, who may do what docs/backends/etcd.md lists and no more.
func TestConformanceWithAPassword(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t, "--bcrypt-cost", "4") // the least: each client and each of its streams has its password looked at
	secure(t, dial(t, server.Addr()))
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		return at(t, server.Addr(), "holdfast/"+t.Name()+":", "app", "secret")
	}, "renew", "wait", "queue", "dedup", "shared")
}

// at is a service whose keys have a prefix. It may want a user and a password.
func at(t testing.TB, addr, prefix string, user ...string) drivertest.Config {
	t.Helper()
	other := dial(t, addr, user...)
	store := func(addr string) driver.Driver {
		return etcdlock.New(dial(t, addr, user...), etcdlock.WithPrefix(prefix))
	}
	return drivertest.Config{
		Driver: func() driver.Driver { return store(addr) },
		Slow:   250 * time.Millisecond, // each write waits for a disk, and connections for their turns
		Overwrite: func(name string) {
			_, err := other.Put(t.Context(), prefix+name, "bm90IGhvbGRmYXN0J3M=")
			ok(t, err)
		},
		Delete: func(name string) {
			_, err := other.Delete(t.Context(), prefix+name)
			ok(t, err)
		},
		Leftovers: func() (left []string) {
			there, err := other.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
			ok(t, err)
			for _, kv := range there.Kvs {
				left = append(left, string(kv.Key))
			}
			return left
		},
		Names:       100, // each waits for a disk several times
		Through:     process(t, addr, prefix, user...).Through,
		Unreachable: func() driver.Driver { return store("127.0.0.1:1") },
	}
}

// process is one of those, over a link of its own.
func process(t testing.TB, addr, prefix string, user ...string) backendtest.Process {
	t.Helper()
	return func() (driver.Driver, []*faultproxy.Proxy) {
		p := faultproxy.New(t, addr)
		return etcdlock.New(dial(t, p.Addr(), user...), etcdlock.WithPrefix(prefix)), []*faultproxy.Proxy{p}
	}
}

// dial returns a client that ends with the test, of a user with a password if there is one.
func dial(t testing.TB, addr string, user ...string) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{Endpoints: []string{addr}}
	if len(user) > 0 {
		config.Username, config.Password = user[0], user[1]
	}
	return etcdlock.Dial(t, config)
}

// locker returns a Locker that ends with the test.
func locker(t *testing.T, store driver.Driver) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, store, longTTL)
}
