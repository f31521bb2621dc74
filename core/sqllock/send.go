package sqllock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// querier is a pool, or one connection of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// answer is where the rows go that a statement answers with. A statement that the database rolls back can have
// answered with rows before that, and is then sent again.
type answer struct {
	begin func() // forgets the rows of an earlier try; nil if there is nothing to forget
	row   func() // takes a row that is in dest; nil if dest is enough
	dest  []any
}

// rows runs a statement that answers with rows.
func (s *Store) rows(ctx context.Context, stmt statement, args []any, a answer) error {
	ctx, stop := s.patient(ctx)
	defer stop()
	return s.send(ctx, stmt, func(db querier) error {
		_, err := a.scan(ctx, db, stmt, args)
		return s.exhausted(err)
	})
}

// scan reads the rows to their end: errors can come last.
func (a answer) scan(ctx context.Context, db querier, stmt statement, args []any) (n int, err error) {
	if a.begin != nil {
		a.begin()
	}
	rows, err := db.QueryContext(ctx, stmt.text, stmt.args(args)...)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has it already
	for ; rows.Next(); n++ {
		if err := rows.Scan(a.dest...); err != nil {
			return n, err
		}
		if a.row != nil {
			a.row()
		}
	}
	return n, rows.Err()
}

// changed runs a statement that finds nothing to change if it is sent again, and returns how many rows it has changed.
func (s *Store) changed(ctx context.Context, stmt statement, args ...any) (rows int64, err error) {
	if s.dialect == Postgres { // a row for each that is changed
		var said string
		n, err := s.once(ctx, stmt, args, answer{dest: []any{&said}})
		return int64(n), err
	}
	result, err := s.exec(ctx, stmt, args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// number runs a statement that answers with one number or none.
func (s *Store) number(ctx context.Context, stmt statement, args ...any) (said number, err error) {
	if s.dialect != MySQL {
		rows, err := s.once(ctx, stmt, args, answer{dest: []any{&said.n}})
		said.found = rows > 0
		return said, err
	}
	result, err := s.exec(ctx, stmt, args)
	if err != nil {
		return said, err
	}
	said.n, err = result.LastInsertId()
	said.found = said.n > 0
	return said, err
}

// once is rows for a statement that must not be sent again.
//
// If the server's queue of notifications is full, it rolls back what would notify. A hint must not cost a
// release: the statement is sent without it.
func (s *Store) once(ctx context.Context, stmt statement, args []any, a answer) (n int, err error) {
	send := func(conn querier) error {
		n, err = a.scan(ctx, conn, stmt, args)
		return err
	}
	if err = s.onConn(ctx, stmt, send); sqlState(err) == pgTooMuch {
		stmt.text = strings.ReplaceAll(stmt.text, "pg_notify(", "concat(")
		err = s.onConn(ctx, stmt, send)
	}
	return n, err
}

func (s *Store) exec(ctx context.Context, stmt statement, args []any) (result sql.Result, err error) {
	err = s.onConn(ctx, stmt, func(conn querier) error {
		result, err = conn.ExecContext(ctx, stmt.text, stmt.args(args)...)
		return err
	})
	return result, err
}

// onConn has f send a statement on a connection of its own, so that it is sent once.
//
// A pool sends it again where the driver calls a connection bad, which ought to mean that nothing was
// sent. pgx 5.12 says so, too, of one that broke before the answer to a simple query: a release
// would be executed, sent again, and be told that somebody else owns the name.
func (s *Store) onConn(ctx context.Context, stmt statement, f func(conn querier) error) error {
	return s.send(ctx, stmt, func(db querier) error {
		if s.dialect == SQLite { // it is no server, to which a connection could break
			return f(db)
		}
		patient, stop := s.patient(ctx)
		conn, err := s.db.Conn(patient)
		stop()
		if err != nil {
			return driver.NotSent(s.exhausted(err))
		}
		defer func() { _ = conn.Close() }() // it goes back to the pool
		return f(conn)
	})
}

// maxTries is how often a statement is sent that the database rolls back. Each time somebody
// else has got on.
const maxTries = 100

// send calls f, and again if the database says that it has rolled all of it back because of
// others who were at the same rows. If SQLite says that somebody else writes, send tries until ctx ends.
func (s *Store) send(ctx context.Context, stmt statement, f func(db querier) error) error {
	leave, err := s.writing(ctx, stmt)
	if err != nil {
		return err
	}
	defer leave()
	for n := 1; ; n++ {
		if err := driver.NotSent(ctx.Err()); err != nil {
			return err
		}
		said := f(s.pool)
		if said != nil && s.dialect.fault(said) == readOnly {
			s.retire(ctx)
		}
		err := s.dialect.classify(said)
		_, again := errors.AsType[*rolledBack](err)
		if s.dialect == SQLite && isBusy(err) {
			again, n = otherWriter(ctx), 0
		}
		if !again || n == maxTries {
			return err
		}
	}
}

// patient is ctx, but ends earlier where the pool has no connection left: then there is time to say so.
func (s *Store) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && s.crowded() {
		return context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/4))
	}
	return ctx, func() {}
}

// exhausted adds to the error of a statement that had no answer in time that the pool has no connection left. That is why, or
// the database answers none of them.
func (s *Store) exhausted(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || !s.crowded() {
		return err
	}
	return driver.Because(err, "all connections of the pool were in use: raise its SetMaxOpenConns, unless the database is slow")
}

func (s *Store) crowded() bool {
	pool := s.db.Stats()
	return pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections
}

// retire closes the connection that was used last, on which a server has said that it takes no writes. After a planned
// switch-over it would stay with the old primary for as long as the pool keeps it; a new one reaches the new primary.
func (s *Store) retire(ctx context.Context) {
	if s.dialect == SQLite || s.db.Stats().Idle == 0 { // it must not wait for another connection
		return
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return
	}
	_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn }) // which has the pool close it
	_ = conn.Close()
}

// otherWriter lets another process write to SQLite, and says whether to try again. SQLite's own wait, busy_timeout, is off
// by default, knows no ctx, and sleeps up to 100 ms between two tries.
func otherWriter(ctx context.Context) (again bool) {
	pause := time.NewTimer(time.Millisecond/2 + rand.N(2*time.Millisecond)) //nolint:gosec // G404: jitter is no secret
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// writing lets one statement of a process write at a time in SQLite, which lets in one in all, and has the others
// sleep and try again, in no order.
func (s *Store) writing(ctx context.Context, stmt statement) (leave func(), err error) {
	if s.dialect != SQLite || strings.HasPrefix(stmt.text, "SELECT") {
		return func() {}, nil
	}
	select {
	case s.writer <- struct{}{}:
		return func() { <-s.writer }, nil
	case <-ctx.Done():
		return nil, driver.NotSent(ctx.Err())
	}
}
