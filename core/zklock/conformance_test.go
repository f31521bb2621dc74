package zklock

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
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
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

// service has a root for each room.
var service = backendtest.Service{
	Start: func(t testing.TB) backendtest.Server { return servers.ZooKeeper(t) },
	Open: func(t testing.TB, addr, room string) driver.Driver {
		conn, session := connect(t, addr, longSession)
		return New(conn, session, WithRoot("/suite/"+room))
	},
	Config: func(t testing.TB, addr, room string) drivertest.Config {
		other, _ := connect(t, addr, longSession)
		remove := func(name string) { // the first of the queue
			dir := "/suite/" + room + "/" + name
			entries, _, err := other.Children(dir)
			ok(t, err)
			if len(entries) > 0 {
				first := slices.MinFunc(entries, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
				ok(t, other.Delete(dir+"/"+first, -1))
			}
		}
		return drivertest.Config{
			Slow: 100 * time.Millisecond, // a look may be under way as its call ends
			// As Curator's locks do, below the same path.
			Stepwise: true,
			Overwrite: func(name string) {
				for _, dir := range []string{"/suite", "/suite/" + room, "/suite/" + room + "/" + name} {
					if _, err := other.Create(dir, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil && err != zk.ErrNodeExists { //nolint:errorlint // the client's own
						t.Fatal(err)
					}
				}
				remove(name)
				_, err := other.Create("/suite/"+room+"/"+name+"/_c_0123-lock-", []byte("10.0.0.1"), zk.FlagSequence, zk.WorldACL(zk.PermAll))
				ok(t, err)
			},
			Delete: remove,
			Leftovers: func() []string {
				names, _, err := other.Children("/suite/" + room)
				ok(t, err)
				return names
			},
			Names: 1000,
		}
	},
}

func TestConformance(t *testing.T) {
	t.Parallel()
	service.Run(t, servers.ZooKeeper(t))
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	service.RunUneven(t, servers.ZooKeeper(t))
}

// connect returns a client that ends with the test, and its session. There may be several addresses, with commas
// between them.
func connect(t testing.TB, addr string, timeout time.Duration) (*zk.Conn, *Session) {
	t.Helper()
	session := new(Session)
	conn, _, err := zk.Connect(strings.Split(addr, ","), timeout, zk.WithDialer(session.Dial), zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	ok(t, err)
	t.Cleanup(func() {
		conn.Close()
		eventually(t, "the client ends", func() bool { return conn.State() == zk.StateDisconnected })
	})
	eventually(t, "there is a session", func() bool { return conn.State() == zk.StateHasSession })
	return conn, session
}

// open returns a Store on a server of its own.
func open(t *testing.T) *Store {
	t.Helper()
	return New(connect(t, servers.ZooKeeper(t).Addr(), 10*time.Second))
}

func take(t *testing.T, s *Store, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), c)
	ok(t, err)
	return g
}

func claim(name, token string) driver.Claim {
	return driver.Claim{Name: name, Token: token, TTL: 4 * time.Second}
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
