package etcdlock

import (
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
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

// service has a prefix for each room. It may want a user and a password.
func service(user ...string) backendtest.Service {
	open := func(t testing.TB, addr, room string) driver.Driver {
		return New(dial(t, addr, user...), WithPrefix("holdfast/"+room+":"))
	}
	return backendtest.Service{
		Start: func(t testing.TB) backendtest.Server { return servers.Etcd(t) },
		Open:  open,
		Config: func(t testing.TB, addr, room string) drivertest.Config {
			other, prefix := dial(t, addr, user...), "holdfast/"+room+":"
			return drivertest.Config{
				Slow: 250 * time.Millisecond, // each write waits for a disk, and connections for their turns
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
				Unreachable: func() driver.Driver { return open(t, "127.0.0.1:1", room) },
			}
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	service().Run(t, servers.Etcd(t))
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	service().RunUneven(t, servers.Etcd(t))
}

// A lease that keeps nothing is known to nobody, and may last for long.
func TestWhoComesBetweenTheRequestsOfACallLeavesNoLease(t *testing.T) {
	t.Parallel()
	s := service()
	config := s.Config
	s.Config = func(t testing.TB, addr, room string) drivertest.Config {
		c, client := config(t, addr, room), dial(t, addr)
		keys := c.Leftovers
		c.Leftovers = func() []string {
			answer, err := client.Leases(t.Context())
			ok(t, err)
			left := keys()
			for _, lease := range answer.Leases {
				left = append(left, fmt.Sprintf("lease %x", lease.ID))
			}
			return left
		}
		return c
	}
	s.Run(t, servers.Etcd(t), "between")
}

// Leases and waiters of a user with a password, who may do what docs/backends/etcd.md lists and no more.
func TestConformanceWithAPassword(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t, "--bcrypt-cost", "4") // the least: each client and each of its streams has its password looked at
	secure(t, dial(t, server.Addr()))
	service("app", "secret").Run(t, server, "renew", "wait", "queue", "dedup", "shared")
}

// longTTL outlives what a test does meanwhile.
const longTTL = 30 * time.Second

// world is a server of its own, a client, and a Store that uses it.
type world struct {
	server *servers.Server
	direct *clientv3.Client
	store  *Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{server: servers.Etcd(t)}
	w.direct = dial(t, w.server.Addr())
	w.store = New(w.direct)
	return w
}

// dial returns a client that ends with the test, of a user with a password if there is one.
func dial(t testing.TB, addr string, user ...string) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{Endpoints: []string{addr}}
	if len(user) > 0 {
		config.Username, config.Password = user[0], user[1]
	}
	return dialWith(t, config)
}

func dialWith(t testing.TB, c clientv3.Config) *clientv3.Client {
	t.Helper()
	c.Logger, c.DialTimeout = zap.NewNop(), time.Minute
	client, err := clientv3.New(c)
	ok(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// locker returns a Locker that ends with the test.
func locker(t *testing.T, store driver.Driver) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, store, longTTL)
}
