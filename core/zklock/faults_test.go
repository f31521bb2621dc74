package zklock

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// world is a server of its own, a Store and a Locker behind a proxy, and another with a good connection.
type world struct {
	server *servers.Server
	proxy  *faultproxy.Proxy
	conn   *zk.Conn // behind the proxy
	store  *Store   // over that
	direct *zk.Conn
	locks  *core.Locker
	other  *core.Locker
}

func newWorld(t *testing.T, session time.Duration) *world {
	t.Helper()
	w := &world{server: servers.ZooKeeper(t)}
	w.proxy = faultproxy.New(t, w.server.Addr())
	var s *Session
	w.conn, s = connect(t, w.proxy.Addr(), session)
	w.store = New(w.conn, s)
	w.locks = locker(t, w.store)
	w.direct, s = connect(t, w.server.Addr(), longSession)
	w.other = locker(t, New(w.direct, s))
	ok(t, acquire(t, w.locks, "name").Release(t.Context())) // the server is warm, and the parents are there
	return w
}

// A session that outlives every test, and a TTL with it.
const (
	longSession = 40 * time.Second
	longTTL     = 16 * time.Second
)

// cut has the client's connection broken, and no other made until the proxy is healed.
func (w *world) cut(t *testing.T) {
	t.Helper()
	w.proxy.Refuse(true)
	w.proxy.Reset()
	eventually(t, "the client notices", func() bool { return w.conn.State() != zk.StateHasSession })
}

func TestInACutLongerThanTheSessionTheContextEndsBeforeAnotherGetsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4*time.Second) // which allows a part of the TTL
	before := w.conn.SessionID()
	backendtest.BlackHole(t, []*faultproxy.Proxy{w.proxy}, w.locks, w.other)
	if w.conn.SessionID() == before {
		t.Error("the session is the same")
	}
}

// Whoever asks for it: a release first, and then nobody but the Store itself. The TTL is longer than the test waits.
func TestADeletionThatFailsIsTriedAgainUntilItIsDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longSession)
	c := claim("name", "token")
	c.TTL = time.Minute
	take(t, w.store, c)
	w.proxy.CutRequest(1)
	w.proxy.CutRequest(3) // behind the greeting of the next connection
	if err := w.store.Release(t.Context(), c); driver.Explain(err).Kind != driver.Unknown {
		t.Errorf("a release that was not sent: %v", err)
	}
	eventually(t, "it is deleted", func() bool {
		entries, _, err := w.direct.Children("/holdfast/name")
		return err == nil && len(entries) == 0 || errors.Is(err, zk.ErrNoNode)
	})
}
