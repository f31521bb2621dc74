package sqllock_test

import (
	"database/sql"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
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

// recovers fails the test unless a name can be locked and unlocked again.
func recovers(t *testing.T, locks *core.Locker) {
	t.Helper()
	for range 600 {
		x, err := locks.TryAcquire(t.Context(), "recovered")
		if err == nil && x.Release(t.Context()) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the lock service does not come back")
}

func TestALeaseSurvivesConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, w *world) {
		x := acquire(t, w.locks, "name", core.WithTTL(10*time.Second), core.WithRenewEvery(200*time.Millisecond))
		for range 10 {
			w.proxy.Reset()
			renewed(t, x)
		}
		eventually(t, "it is released", func() bool { return x.Release(t.Context()) == nil })
	})
}

func TestALeaseSurvivesConnectionsThatTheServerKills(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, w *world) {
		x := acquire(t, w.locks, "name", core.WithTTL(10*time.Second), core.WithRenewEvery(200*time.Millisecond))
		for range 10 {
			w.kill(t)
			renewed(t, x)
		}
		eventually(t, "it is released", func() bool { return x.Release(t.Context()) == nil })
	})
}

func TestALostReplyIsNotSomebodyElse(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, w *world) {
		ok(t, acquire(t, w.locks, "warm").Release(t.Context()))
		w.proxy.DropReplies(1)
		x, err := w.locks.TryAcquire(t.Context(), "name", core.WithTTL(6*time.Second))
		ok(t, err)
		ok(t, x.Release(t.Context()))
	})
}

func TestInABlackHoleTheContextEndsBeforeAnotherGetsIn(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, w *world) {
		x := acquire(t, w.locks, "name")
		w.proxy.BlackHole(true)
		y := acquire(t, w.other, "name")
		if x.Context().Err() == nil {
			t.Error("two holders")
		}
		is(t, x.Err(), core.ErrLost)
		if y.Fence() <= x.Fence() {
			t.Errorf("fence %d after %d", y.Fence(), x.Fence())
		}
		w.proxy.Heal()
		is(t, x.Release(t.Context()), core.ErrLost)
		ok(t, y.Release(t.Context()))
		recovers(t, w.locks)
	})
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
		if y.Fence() <= x.Fence() {
			t.Errorf("fence %d after %d", y.Fence(), x.Fence())
		}
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
		recovers(t, w.other)
	})
}

func TestARefusedDialIsNotSent(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	ok(t, err)
	addr := l.Addr().String()
	ok(t, l.Close())
	for _, d := range []database{postgres(addr, ""), mariadb(addr, "")} {
		db, err := sql.Open(d.driver, d.source)
		ok(t, err)
		defer func() { _ = db.Close() }()
		wantNotSent(t, sqllock.New(db, d.dialect))
	}
}

func TestAMissingTableIsUnavailableAndSaysSo(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, w *world) {
		_, err := w.direct.ExecContext(t.Context(), "DROP TABLE holdfast_locks")
		ok(t, err)
		_, err = w.other.TryAcquire(t.Context(), "name")
		is(t, err, core.ErrUnavailable)
	})
}
