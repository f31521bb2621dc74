package sqllock_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/sqllock"
	"github.com/holdfast-go/holdfast/core/sqllock/pgxlisten"
)

// What the tests of all backends ask in the same way.
var (
	ok         = backendtest.OK
	acquire    = backendtest.Acquire
	is         = backendtest.Is
	eventually = backendtest.Eventually
	waits      = backendtest.InVain
)

// ttl of the leases in tests: short enough to wait for, long enough for a machine that is
// busy with something else.
const ttl = 2 * time.Second

// database is how to reach one that is under test.
type database struct {
	dialect sqllock.Dialect
	driver  string
	source  string
	addr    string // part of source, where there is a server
	listens bool   // waiters are told by LISTEN
}

// listening is the same database, whose waiters are told.
func (d database) listening() database {
	d.listens = true
	return d
}

// store is a Store as one process would have it.
func (d database) store(t testing.TB, table string) *sqllock.Store {
	t.Helper()
	opts := []sqllock.Option{sqllock.WithTable(table)}
	if d.listens {
		opts = append(opts, sqllock.WithListen(pgxlisten.Connect(d.source)))
	}
	return sqllock.New(d.open(t), d.dialect, opts...)
}

// process is a Store as one more process would have it, and its link to the server if there is one.
func (d database) process(t testing.TB, table string) backendtest.Process {
	t.Helper()
	return func() (driver.Driver, []*faultproxy.Proxy) {
		if d.addr == "" {
			return d.store(t, table), nil
		}
		p := faultproxy.New(t, d.addr)
		return d.through(p.Addr()).store(t, table), []*faultproxy.Proxy{p}
	}
}

func postgres(addr, params string) database {
	return database{sqllock.Postgres, "pgx", "postgres://postgres@" + addr + "/postgres?sslmode=disable" + params, addr, false}
}

func mariadb(addr, params string) database {
	return database{sqllock.MySQL, "mysql", "root@tcp(" + addr + ")/test" + params, addr, false}
}

// through is the same database, reached at another address.
func (d database) through(addr string) database {
	d.source, d.addr = strings.Replace(d.source, d.addr, addr, 1), addr
	return d
}

func sqlite(t testing.TB, params string) database {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.db")
	return database{sqllock.SQLite, "sqlite", "file:" + file + "?_pragma=busy_timeout(20000)&_pragma=synchronous(OFF)" + params, "", false}
}

// open returns a pool as one process would have it.
func (d database) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.source)
	ok(t, err)
	db.SetMaxOpenConns(32)
	db.SetMaxIdleConns(32)
	if d.dialect == sqllock.SQLite {
		db.SetMaxOpenConns(8) // one writes at a time, and each new one costs as much as ten statements
	}
	ok(t, db.PingContext(t.Context())) // to connect takes long on a busy machine
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var tables atomic.Int32

// table makes a table that no other test has.
func (d database) table(t testing.TB) sqllock.Option {
	t.Helper()
	return sqllock.WithTable(d.tableNamed(t))
}

func (d database) tableNamed(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("locks_%d", tables.Add(1))
	d.exec(t, schema(t, d.dialect, sqllock.WithTable(name)))
	return name
}

func schema(t testing.TB, d sqllock.Dialect, opts ...sqllock.Option) string {
	t.Helper()
	text, err := sqllock.Schema(d, opts...)
	ok(t, err)
	return text
}

func (d database) exec(t testing.TB, text string, args ...any) {
	t.Helper()
	_, err := d.open(t).ExecContext(t.Context(), text, args...)
	ok(t, err)
}

// service is what the suite runs on.
func (d database) service(t testing.TB) drivertest.Config {
	t.Helper()
	return d.serviceIn(t, d.tableNamed(t))
}

func (d database) serviceIn(t testing.TB, table string) drivertest.Config {
	t.Helper()
	s := drivertest.Config{
		Driver:    func() driver.Driver { return d.store(t, table) },
		Slow:      250 * time.Millisecond, // a waiter asks before it stands in the queue
		Leftovers: func() []string { return d.taken(t, table) },
		Delete:    func(name string) { d.exec(t, "DELETE FROM "+table+" WHERE name = '"+name+"'") },
		Names:     100, // the row of each stays, and each costs two commits
	}
	if d.addr != "" {
		s.Through = d.process(t, table).Through
		s.Unreachable = func() driver.Driver { return d.unreachable(t) }
	}
	return s
}

// unreachable is a Store whose server is not there.
func (d database) unreachable(t testing.TB) *sqllock.Store {
	t.Helper()
	d = d.through("127.0.0.1:1")
	db, err := sql.Open(d.driver, d.source)
	ok(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return sqllock.New(db, d.dialect)
}

// taken are the names whose rows say more than a fence.
func (d database) taken(t testing.TB, table string) (names []string) {
	t.Helper()
	rows, err := d.open(t).QueryContext(t.Context(), "SELECT name FROM "+table+" WHERE token <> '' OR head <> '' OR state <> ''")
	ok(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		ok(t, rows.Scan(&name))
		names = append(names, name)
	}
	ok(t, rows.Err())
	return names
}

// uneven is a service over connections that have a delay each.
func (d database) uneven(t testing.TB) drivertest.Config {
	t.Helper()
	table := d.tableNamed(t)
	return d.process(t, table).Uneven(d.serviceIn(t, table))
}

// killed is a service with the server of its own, which the suite may kill.
func (d database) killed(t testing.TB, srv *servers.Server) drivertest.Config {
	t.Helper()
	s := d.service(t)
	s.Kill, s.Restart = srv.Kill, srv.Restart
	return s
}

// locker returns a Locker that ends with the test.
func locker(t testing.TB, db *sql.DB, d sqllock.Dialect, opts ...sqllock.Option) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, sqllock.New(db, d, opts...), ttl)
}
