package sqllock_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

// world is a server of its own, a Locker behind a proxy, and one with a good connection.
type world struct {
	server  *servers.Server
	dialect sqllock.Dialect
	proxy   *faultproxy.Proxy
	direct  *sql.DB
	locks   *core.Locker
	other   *core.Locker
	// kill is a statement that ends every connection but its own.
	kill func(t *testing.T)
}

// eachServer runs the test on a PostgreSQL and a MariaDB of its own.
func eachServer(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		onPostgres(t, test)
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, servers.MariaDB(t), mariadb)
		w.kill = func(t *testing.T) { t.Helper(); killAll(t, w.direct) }
		test(t, w)
	})
}

func onPostgres(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	w := newWorld(t, servers.Postgres(t), postgres)
	w.kill = func(t *testing.T) {
		t.Helper()
		_, err := w.direct.ExecContext(t.Context(),
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
		ok(t, err)
	}
	test(t, w)
}

func newWorld(t *testing.T, srv *servers.Server, at func(addr, params string) database) *world {
	t.Helper()
	w := &world{server: srv, proxy: faultproxy.New(t, srv.Addr())}
	near, far := at(srv.Addr(), ""), at(w.proxy.Addr(), "")
	near.exec(t, schema(t, near.dialect))
	w.direct = near.open(t)
	w.dialect = near.dialect
	w.locks = locker(t, far.open(t), far.dialect)
	w.other = locker(t, w.direct, near.dialect)
	return w
}

// killAll ends every connection to a MariaDB but one.
func killAll(t *testing.T, db *sql.DB) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	ok(t, err)
	defer func() { _ = conn.Close() }()
	rows, err := conn.QueryContext(t.Context(), "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user = 'root'")
	ok(t, err)
	defer func() { _ = rows.Close() }()
	var ids []int64
	for rows.Next() {
		var id int64
		ok(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	ok(t, rows.Err())
	for _, id := range ids {
		_, _ = conn.ExecContext(t.Context(), fmt.Sprintf("KILL %d", id)) // it may have gone by itself
	}
}

func TestALeaseSurvivesConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, w *world) { backendtest.Breaks(t, w.locks, 10, w.proxy.Reset) })
}

func TestALeaseSurvivesConnectionsThatTheServerKills(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, w *world) { backendtest.Breaks(t, w.locks, 10, func() { w.kill(t) }) })
}

func TestInABlackHoleTheContextEndsBeforeAnotherGetsIn(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, w *world) { backendtest.BlackHole(t, w.proxy, w.locks, w.other) })
}

func TestARowThatIsGoneIsALossWithinTheRenewPeriod(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, w *world) {
		x := acquire(t, w.locks, "name", core.WithTTL(time.Minute), core.WithRenewEvery(time.Second))
		_, err := w.direct.ExecContext(t.Context(), "DELETE FROM holdfast_locks")
		ok(t, err)
		select {
		case <-x.Context().Done():
		case <-time.After(20 * time.Second): // of a minute
			t.Fatal("not announced")
		}
		is(t, x.Err(), core.ErrLost)
		y := acquire(t, w.other, "name")
		backendtest.Grows(t, y.Fence(), x.Fence())
		ok(t, y.Release(t.Context()))
	})
}

func TestAServerThatIsDownIsUnavailableAndComesBackWithoutARestartOfOurs(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, w *world) {
		ok(t, acquire(t, w.other, "name").Release(t.Context()))
		w.server.Stop()
		_, err := w.other.TryAcquire(t.Context(), "name", core.WithTTL(10*time.Second))
		is(t, err, core.ErrUnavailable)
		w.server.Restart()
		backendtest.Recovers(t, w.other, "recovered")
	})
}
