package sqllock

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-go/holdfast/core/driver"
)

// rows runs a statement that answers with rows, has each of them put in dest and calls each,
// and returns how many there were. The rows are read to their end: errors can come last.
func (s *Store) rows(ctx context.Context, stmt statement, args []any, each func(), dest ...any) (n int, err error) {
	err = s.send(ctx, func() error {
		n = 0
		rows, err := s.db.QueryContext(ctx, stmt.text, stmt.args(args)...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err has it already
		for rows.Next() {
			if err := rows.Scan(dest...); err != nil {
				return err
			}
			n++
			each()
		}
		return rows.Err()
	})
	return n, err
}

// affected runs a statement and returns how many rows it has changed.
func (s *Store) affected(ctx context.Context, stmt statement, args ...any) (rows int64, err error) {
	result, err := s.exec(ctx, stmt, args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// changed is affected for a statement that finds nothing to change if it is sent again.
//
// A pool does that where the driver calls a connection bad, which ought to mean that nothing was
// sent. pgx 5.12 says so, too, of one that broke before the answer to a simple query: a release
// would be executed, sent again, and be told that somebody else owns the name. On a connection of
// its own a statement is sent once, and its outcome is then unknown.
func (s *Store) changed(ctx context.Context, stmt statement, args ...any) (rows int64, err error) {
	err = s.send(ctx, func() error {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }() // it goes back to the pool
		result, err := conn.ExecContext(ctx, stmt.text, stmt.args(args)...)
		if err == nil {
			rows, err = result.RowsAffected()
		}
		return err
	})
	return rows, err
}

// number runs a statement that answers with one number or none.
func (s *Store) number(ctx context.Context, stmt statement, args ...any) (number int64, found bool, err error) {
	if s.dialect != MySQL {
		n, err := s.rows(ctx, stmt, args, func() {}, &number)
		return number, n > 0, err
	}
	result, err := s.exec(ctx, stmt, args)
	if err != nil {
		return 0, false, err
	}
	number, err = result.LastInsertId()
	return number, number > 0, err
}

func (s *Store) exec(ctx context.Context, stmt statement, args []any) (result sql.Result, err error) {
	err = s.send(ctx, func() error {
		result, err = s.db.ExecContext(ctx, stmt.text, stmt.args(args)...)
		return err
	})
	return result, err
}

// maxTries is how often a statement is sent that the database rolls back. Each time somebody
// else has got on.
const maxTries = 100

// send calls f, and again if the database says that it has rolled all of it back because of
// others who were at the same rows.
func (s *Store) send(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		if err := driver.NotSent(ctx.Err()); err != nil {
			return err
		}
		err := s.dialect.classify(f())
		if _, again := errors.AsType[*rolledBack](err); !again || n == maxTries {
			return err
		}
	}
}
