package zklock_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/zklock"
)

// What the tests of all backends ask in the same way.
var (
	ok         = backendtest.OK
	eventually = backendtest.Eventually
	acquire    = backendtest.Acquire
	renewed    = backendtest.Renewed
	is         = backendtest.Is
)

func TestMain(m *testing.M) {
	backendtest.AtOnce()
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t) // for all cases; each has a root of its own
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service {
			return at(t, server.Addr(), "/"+strings.ReplaceAll(t.Name(), "/", ":"), 20*time.Second)
		},
		OpenServers: func(t *testing.T) (drivertest.Service, drivertest.Servers) {
			own := servers.ZooKeeper(t)
			return at(t, own.Addr(), "/holdfast", longSession), drivertest.Servers{Kill: own.Kill, Restart: own.Restart}
		},
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.ZooKeeper(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service {
			return at(t, server.Addr(), "/"+strings.ReplaceAll(t.Name(), "/", ":"), 20*time.Second)
		},
	}.Uneven(8))
}

// at is a service whose locks are below a root.
func at(t *testing.T, addr, root string, timeout time.Duration) drivertest.Service {
	t.Helper()
	other, _ := connect(t, addr, timeout)
	first := func(dir string) string {
		seats, _, err := other.Children(dir)
		ok(t, err)
		slices.SortFunc(seats, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
		if len(seats) == 0 {
			return ""
		}
		return dir + "/" + seats[0]
	}
	remove := func(name string) {
		if path := first(root + "/" + name); path != "" {
			ok(t, other.Delete(path, -1))
		}
	}
	store := func(addr string) driver.Driver {
		conn, session := connect(t, addr, timeout)
		return zklock.New(conn, session, zklock.WithRoot(root))
	}
	return drivertest.Service{
		Driver: func() driver.Driver { return store(addr) },
		Through: func() (driver.Driver, []*faultproxy.Proxy) {
			p := faultproxy.New(t, addr)
			return store(p.Addr()), []*faultproxy.Proxy{p}
		},
		Holder: addr + " " + root,
		// As Curator's locks do, below the same path.
		Stepwise: true,
		Overwrite: func(name string) {
			for _, dir := range []string{root, root + "/" + name} {
				if _, err := other.Create(dir, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil && err != zk.ErrNodeExists { //nolint:errorlint // the client's own
					t.Fatal(err)
				}
			}
			remove(name)
			_, err := other.Create(root+"/"+name+"/_c_0123-lock-", []byte("10.0.0.1"), zk.FlagSequence, zk.WorldACL(zk.PermAll))
			ok(t, err)
		},
		Delete: remove,
	}
}

// TestHolder is the process that the conformance suite freezes, for longer than its session.
func TestHolder(t *testing.T) {
	t.Parallel()
	drivertest.Hold(t, func(holder string) driver.Driver {
		addr, root, _ := strings.Cut(holder, " ")
		conn, session := connect(t, addr, 7500*time.Millisecond)
		return zklock.New(conn, session, zklock.WithRoot(root))
	})
}

// connect returns a client that ends with the test, and its session. There may be several addresses, with commas
// between them.
func connect(t *testing.T, addr string, timeout time.Duration) (*zk.Conn, *zklock.Session) {
	t.Helper()
	session := new(zklock.Session)
	conn, _, err := zk.Connect(strings.Split(addr, ","), timeout, zk.WithDialer(session.Dial), zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	ok(t, err)
	t.Cleanup(func() {
		conn.Close()
		eventually(t, "the client ends", func() bool { return conn.State() == zk.StateDisconnected })
	})
	eventually(t, "there is a session", func() bool { return conn.State() == zk.StateHasSession })
	return conn, session
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// ttl of the leases that tests wait for the end of.
const ttl = 2 * time.Second

// locker returns a Locker that ends with the test.
func locker(t *testing.T, store *zklock.Store) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, store, longTTL)
}
