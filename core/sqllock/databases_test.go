package sqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

// ttl of the leases in tests: short enough to wait for, long enough for a machine that is
// busy with something else.
const ttl = 2 * time.Second

// database is how to reach one that is under test.
type database struct {
	dialect sqllock.Dialect
	driver  string
	source  string
}

func postgres(addr, params string) database {
	return database{sqllock.Postgres, "pgx", "postgres://postgres@" + addr + "/postgres?sslmode=disable" + params}
}

func mariadb(addr, params string) database {
	return database{sqllock.MySQL, "mysql", "root@tcp(" + addr + ")/test" + params}
}

func sqlite(t *testing.T, params string) database {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.db")
	return database{sqllock.SQLite, "sqlite", "file:" + file + "?_pragma=busy_timeout(20000)&_pragma=synchronous(OFF)" + params}
}

// open returns a pool as one process would have it.
func (d database) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.source)
	ok(t, err)
	db.SetMaxIdleConns(10)
	ok(t, db.PingContext(t.Context())) // to connect takes long on a busy machine
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var tables atomic.Int32

// table makes a table that no other test has.
func (d database) table(t *testing.T) sqllock.Option {
	t.Helper()
	table := sqllock.WithTable(fmt.Sprintf("locks_%d", tables.Add(1)))
	d.exec(t, schema(t, d.dialect, table))
	return table
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

// conforms runs the suite.
func (d database) conforms(t *testing.T) {
	t.Helper()
	drivertest.Run(t, drivertest.Harness{Open: func(t *testing.T) drivertest.Service {
		table := d.table(t)
		return drivertest.Service{Driver: func() driver.Driver { return sqllock.New(d.open(t), d.dialect, table) }}
	}})
}

// locker returns a Locker that ends with the test.
func locker(t *testing.T, db *sql.DB, d sqllock.Dialect, opts ...sqllock.Option) *core.Locker {
	t.Helper()
	locks, err := core.New(sqllock.New(db, d, opts...), core.WithTTL(ttl))
	ok(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = locks.Close(ctx) // the test may have left leases
	})
	return locks
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
