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
	renewed    = backendtest.Renewed
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
func (d database) store(t *testing.T, table string) *sqllock.Store {
	t.Helper()
	opts := []sqllock.Option{sqllock.WithTable(table)}
	if d.listens {
		opts = append(opts, sqllock.WithListen(pgxlisten.Connect(d.source)))
	}
	return sqllock.New(d.open(t), d.dialect, opts...)
}

// process is a Store as one more process would have it, and its link to the server if there is one.
func (d database) process(t *testing.T, table string) (driver.Driver, []*faultproxy.Proxy) {
	t.Helper()
	if d.addr == "" {
		return d.store(t, table), nil
	}
	p := faultproxy.New(t, d.addr)
	return d.through(p.Addr()).store(t, table), []*faultproxy.Proxy{p}
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

func sqlite(t *testing.T, params string) database {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.db")
	return database{sqllock.SQLite, "sqlite", "file:" + file + "?_pragma=busy_timeout(20000)&_pragma=synchronous(OFF)" + params, "", false}
}

// open returns a pool as one process would have it.
func (d database) open(t *testing.T) *sql.DB {
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
func (d database) table(t *testing.T) sqllock.Option {
	t.Helper()
	return sqllock.WithTable(d.tableNamed(t))
}

func (d database) tableNamed(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("locks_%d", tables.Add(1))
	d.exec(t, schema(t, d.dialect, sqllock.WithTable(name)))
	return name
}

func schema(t *testing.T, d sqllock.Dialect, opts ...sqllock.Option) string {
	t.Helper()
	text, err := sqllock.Schema(d, opts...)
	ok(t, err)
	return text
}

func (d database) exec(t *testing.T, text string, args ...any) {
	t.Helper()
	_, err := d.open(t).ExecContext(t.Context(), text, args...)
	ok(t, err)
}

// harness is what the suite needs.
func (d database) harness() drivertest.Harness {
	return drivertest.Harness{Open: d.service}
}

func (d database) service(t *testing.T) drivertest.Service {
	t.Helper()
	name := d.tableNamed(t)
	s := drivertest.Service{
		Driver: func() driver.Driver { return d.store(t, name) },
		Holder: strings.Join([]string{string(d.dialect), d.driver, d.source, name}, " "),
	}
	if d.addr != "" {
		s.Through = func() (driver.Driver, []*faultproxy.Proxy) { return d.process(t, name) }
	}
	return s
}

// harnessWith is a harness with a server that the suite may kill.
func (d database) harnessWith(open func(t *testing.T) (database, *servers.Server)) drivertest.Harness {
	h := d.harness()
	h.OpenServers = func(t *testing.T) (drivertest.Service, drivertest.Servers) {
		own, srv := open(t)
		return own.service(t), drivertest.Servers{Kill: srv.Kill, Restart: srv.Restart}
	}
	return h
}

// TestHolder is the process that the conformance suite freezes.
func TestHolder(t *testing.T) {
	t.Parallel()
	drivertest.Hold(t, func(holder string) driver.Driver {
		words := strings.Fields(holder)
		d := database{dialect: sqllock.Dialect(words[0]), driver: words[1], source: words[2]}
		return d.store(t, words[3])
	})
}

// locker returns a Locker that ends with the test.
func locker(t *testing.T, db *sql.DB, d sqllock.Dialect, opts ...sqllock.Option) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, sqllock.New(db, d, opts...), ttl)
}
