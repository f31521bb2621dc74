package sqllock_test

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

// fake is a database of which a test says what it answers: rows, then an error.
type fake func(ctx context.Context, text string) (rows [][]sqldriver.Value, err error)

func row(columns ...sqldriver.Value) [][]sqldriver.Value { return [][]sqldriver.Value{columns} }

// aboutItself is what a server says when it is asked for its version, and MySQL for autocommit too.
func aboutItself(text, version string, commits bool) [][]sqldriver.Value {
	if strings.Contains(text, "@@autocommit") {
		return row(version, commits)
	}
	return row(version)
}

func (f fake) Connect(context.Context) (sqldriver.Conn, error) { return fakeConn{f}, nil }
func (f fake) Driver() sqldriver.Driver                        { return nil }

type fakeConn struct{ answer fake }

func (c fakeConn) Prepare(text string) (sqldriver.Stmt, error) { return fakeStmt{c, text}, nil }
func (fakeConn) Close() error                                  { return nil }
func (fakeConn) Begin() (sqldriver.Tx, error)                  { return nil, io.EOF }

func (c fakeConn) QueryContext(ctx context.Context, text string, _ []sqldriver.NamedValue) (sqldriver.Rows, error) {
	rows, err := c.answer(ctx, text)
	if len(rows) == 0 && err != nil {
		return nil, err
	}
	return &fakeRows{columnsOf(rows), rows, err}, nil
}

func (c fakeConn) ExecContext(ctx context.Context, text string, _ []sqldriver.NamedValue) (sqldriver.Result, error) {
	rows, err := c.answer(ctx, text)
	return sqldriver.RowsAffected(len(rows)), err
}

type fakeStmt struct {
	conn fakeConn
	text string
}

func (fakeStmt) Close() error  { return nil }
func (fakeStmt) NumInput() int { return -1 }

func (s fakeStmt) Query([]sqldriver.Value) (sqldriver.Rows, error) {
	return s.conn.QueryContext(context.Background(), s.text, nil)
}

func (s fakeStmt) Exec([]sqldriver.Value) (sqldriver.Result, error) {
	return s.conn.ExecContext(context.Background(), s.text, nil)
}

type fakeRows struct {
	columns []string // whatever has been read: package sql names one in an error
	left    [][]sqldriver.Value
	err     error
}

func columnsOf(rows [][]sqldriver.Value) []string {
	if len(rows) == 0 {
		return nil
	}
	return make([]string, len(rows[0]))
}

func (r *fakeRows) Columns() []string { return r.columns }

func (*fakeRows) Close() error { return nil }

func (r *fakeRows) Next(dest []sqldriver.Value) error {
	if len(r.left) == 0 {
		return cmp.Or(r.err, io.EOF)
	}
	copy(dest, r.left[0])
	r.left = r.left[1:]
	return nil
}

type stateError string

func (e stateError) Error() string    { return "the server says " + string(e) }
func (e stateError) SQLState() string { return string(e) }

func TestServersThatCannotKeepThePromisesAreRefused(t *testing.T) {
	t.Parallel()
	for version, test := range map[string]struct {
		dialect sqllock.Dialect
		names   string
	}{
		"CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2026/05/15, go1.22)":   {sqllock.Postgres, "CockroachDB"},
		"PostgreSQL 11.2-YB-2.21.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang":  {sqllock.Postgres, "YugabyteDB"},
		"PostgreSQL 15.2-YB-2.25.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang":  {sqllock.Postgres, "YugabyteDB"},
		"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC, Redshift 1.0.6000": {sqllock.Postgres, "Redshift"},
		"8.0.11-TiDB-v8.5.0": {sqllock.MySQL, "TiDB"},
		"8.0.40":             {sqllock.MySQL, "autocommit"},
	} {
		var sent atomic.Int32
		db := sql.OpenDB(fake(func(_ context.Context, text string) ([][]sqldriver.Value, error) {
			sent.Add(1)
			return aboutItself(text, version, false), nil
		}))
		defer func() { _ = db.Close() }()
		s := sqllock.New(db, test.dialect)
		wantNotSent(t, s)
		_, err := locker(t, db, test.dialect).TryAcquire(t.Context(), "name")
		is(t, err, core.ErrUnavailable)
		if n := sent.Load(); n != 2 || !strings.Contains(err.Error(), test.names) { // each Store has asked once
			t.Errorf("%s: %d statements, %v", test.names, n, err)
		}
	}
}
