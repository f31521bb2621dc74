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
	waits      = backendtest.InVain
	is         = backendtest.Is
)

func TestMain(m *testing.M) {
	backendtest.AtOnce()
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t) // for all cases; each has a root of its own
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		s := at(t, server.Addr(), rootOf(t), 20*time.Second)
		s.Own = func() drivertest.Config {
			own := servers.ZooKeeper(t)
			s := at(t, own.Addr(), "/holdfast", longSession)
			s.Kill, s.Restart = own.Kill, own.Restart
			return s
		}
		return s
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.ZooKeeper(t)
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		return process(t, server.Addr(), rootOf(t), 20*time.Second).Uneven(at(t, server.Addr(), rootOf(t), 20*time.Second))
	})
}

func rootOf(t testing.TB) string { return "/" + strings.ReplaceAll(t.Name(), "/", ":") }

// at is a service whose locks are below a root.
func at(t testing.TB, addr, root string, timeout time.Duration) drivertest.Config {
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
	return drivertest.Config{
		Driver: func() driver.Driver {
			conn, session := connect(t, addr, timeout)
			return zklock.New(conn, session, zklock.WithRoot(root))
		},
		Slow:    100 * time.Millisecond, // a look may be under way as its call ends
		Through: process(t, addr, root, timeout).Through,
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

// process is one of those, over a link of its own.
func process(t testing.TB, addr, root string, timeout time.Duration) backendtest.Process {
	t.Helper()
	return func() (driver.Driver, []*faultproxy.Proxy) {
		p := faultproxy.New(t, addr)
		conn, session := connect(t, p.Addr(), timeout)
		return zklock.New(conn, session, zklock.WithRoot(root)), []*faultproxy.Proxy{p}
	}
}

// connect returns a client that ends with the test, and its session. There may be several addresses, with commas
// between them.
func connect(t testing.TB, addr string, timeout time.Duration) (*zk.Conn, *zklock.Session) {
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
func locker(t *testing.T, store driver.Driver) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, store, longTTL)
}
