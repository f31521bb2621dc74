package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// database is one that is under test, shared by all tests of the package.
type database struct {
	*sql.DB
	dialect fence.Dialect
	alone   bool          // one transaction keeps all others out, or a reader all writers
	tables  *atomic.Int32 // made so far: numbers them
}

func open(t *testing.T, dialect fence.Dialect, driver, source string) database {
	t.Helper()
	db, err := sql.Open(driver, source)
	backendtest.OK(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return database{DB: db, dialect: dialect, tables: new(atomic.Int32)}
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t)
	proveAll(t, open(t, fence.Postgres, "pgx", "postgres://postgres@"+srv.Addr()+"/postgres?sslmode=disable"))
}

func TestMariaDB(t *testing.T) {
	t.Parallel()
	srv := servers.MariaDB(t)
	for name, params := range map[string]string{
		"defaults":      "",
		"clientFound":   "?clientFoundRows=true&sql_mode=%27ORACLE%27",
		"interpolation": "?interpolateParams=true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, fence.MySQL, "mysql", "root@tcp("+srv.Addr()+")/test"+params)
			db.tables = &mariadbTables
			proveAll(t, db)
		})
	}
}

var mariadbTables atomic.Int32 // shared, as the server is

func TestSQLite(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]string{
		"deferred":  "&_pragma=journal_mode(WAL)",
		"immediate": "&_pragma=journal_mode(WAL)&_txlock=immediate",
		"rollback":  "&_pragma=journal_mode(DELETE)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "test.db")
			db := open(t, fence.SQLite, "sqlite", "file:"+file+"?_pragma=busy_timeout(20000)"+params)
			db.alone = name != "deferred"
			proveAll(t, db)
		})
	}
}

// bench is one test's corner of a database: a guard with a table of its own, and a table of
// data that it guards.
type bench struct {
	*testing.T
	database
	guard      *fence.SQL
	seen, data string // their tables
}

func newBench(t *testing.T, db database) *bench {
	t.Helper()
	n := db.tables.Add(1)
	b := &bench{T: t, database: db, seen: fmt.Sprintf("seen_%d", n), data: fmt.Sprintf("data_%d", n)}
	var err error
	b.guard, err = fence.NewSQL(db.dialect, fence.WithTable(b.seen))
	b.ok(err)
	b.exec(b.guard.Schema())
	b.exec("CREATE TABLE " + b.data + " (id BIGINT NOT NULL PRIMARY KEY, value BIGINT NOT NULL, fence BIGINT NOT NULL)")
	b.exec("INSERT INTO " + b.data + " VALUES (1, 0, 0), (2, 0, 0)")
	return b
}

func (b *bench) exec(statement string) {
	b.Helper()
	if _, err := b.ExecContext(b.Context(), statement); err != nil {
		b.Fatalf("%s: %v", statement, err)
	}
}

func (b *bench) begin(opts *sql.TxOptions) *sql.Tx {
	b.Helper()
	tx, err := b.BeginTx(b.Context(), opts)
	backendtest.OK(b, err)
	b.Cleanup(func() { _ = tx.Rollback() }) // most tests have ended it
	return tx
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (b *bench) value(q querier) (value int64, err error) {
	err = q.QueryRowContext(b.Context(), "SELECT value FROM "+b.data+" WHERE id = 1").Scan(&value)
	return value, err
}

func (b *bench) write(q querier, value int64) error {
	_, err := q.ExecContext(b.Context(), fmt.Sprintf("UPDATE %s SET value = %d WHERE id = 1", b.data, value))
	return err
}

// has fails the test unless the data is as it should be.
func (b *bench) has(want int64) {
	b.Helper()
	if value, err := b.value(b); value != want || err != nil {
		b.Errorf("the value is %d, %v; want %d", value, err, want)
	}
}

func (b *bench) ok(err error) {
	b.Helper()
	backendtest.OK(b, err)
}

// stale fails the test unless err is this refusal.
func (b *bench) stale(err error, key string, mine, seen uint64) {
	b.Helper()
	want := fence.StaleError{Key: key, Fence: mine, Seen: seen}
	if got, ok := asStale(err); !ok || got != want {
		b.Errorf("%v; want %v", err, &want)
	}
}
