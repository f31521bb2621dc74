package sqllock_test

import (
	"database/sql"
	sqldriver "database/sql/driver"
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

// connector makes connections for a pool of another kind.
func (d database) connector(t testing.TB) sqldriver.Connector {
	t.Helper()
	makes, there := d.open(t).Driver().(sqldriver.DriverContext)
	if !there {
		t.Fatalf("%s makes no connectors", d.driver)
	}
	c, err := makes.OpenConnector(d.source)
	ok(t, err)
	return c
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

// service is what the suite runs on where there is a server, whose rooms are tables. start starts one that cases may kill.
func (d database) service(start func(t testing.TB) backendtest.Server) backendtest.Service {
	return backendtest.Service{
		Start: start,
		Open:  func(t testing.TB, addr, table string) driver.Driver { return d.through(addr).store(t, table) },
		Config: func(t testing.TB, addr, table string) drivertest.Config {
			c := d.through(addr).config(t, table)
			c.Unreachable = func() driver.Driver {
				db, err := sql.Open(d.driver, d.through("127.0.0.1:1").source)
				ok(t, err)
				t.Cleanup(func() { _ = db.Close() })
				return sqllock.New(db, d.dialect)
			}
			return c
		},
	}
}

// config makes a table, and says what the suite can do there.
func (d database) config(t testing.TB, table string) drivertest.Config {
	t.Helper()
	d.exec(t, schema(t, d.dialect, sqllock.WithTable(table)))
	return drivertest.Config{
		Slow:      250 * time.Millisecond, // a waiter asks before it stands in the queue
		Leftovers: func() []string { return d.names(t, table, moreThanAFence) },
		Delete:    func(name string) { d.exec(t, "DELETE FROM "+table+" WHERE name = '"+name+"'") },
		Names:     100, // the row of each stays, and each costs two commits
	}
}

const moreThanAFence = "token <> '' OR head <> '' OR state <> ''"

// names are those of a table's rows of a kind.
func (d database) names(t testing.TB, table, kind string) (names []string) {
	t.Helper()
	rows, err := d.open(t).QueryContext(t.Context(), "SELECT name FROM "+table+" WHERE "+kind)
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

// locker returns a Locker that ends with the test.
func locker(t testing.TB, db *sql.DB, d sqllock.Dialect, opts ...sqllock.Option) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, sqllock.New(db, d, opts...), ttl)
}
