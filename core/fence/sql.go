package fence

import (
	"context"
	"database/sql"
)

// SQL guards what is in an SQL database, through database/sql and any driver. It remembers
// fences in a table of that database, one row for each key, and checks them in the
// transaction of the write. So a refused write is rolled back as a whole, and no order of
// events lets an older holder's write in after a newer holder's.
//
// It is safe at every isolation level. Above READ COMMITTED (MySQL: above REPEATABLE READ)
// a transaction that has read something before it shows its fence can fail with the
// database's serialization error instead of a *[StaleError]: it is refused either way.
//
// A key's row stays locked until its transaction ends, and others who write under the key
// wait for that. A holder that is paused in the midst of its transaction therefore keeps its
// successor waiting: let the database end such transactions (PostgreSQL:
// idle_in_transaction_session_timeout; MySQL: wait_timeout), and let waits end
// (lock_timeout; innodb_lock_wait_timeout; SQLite: busy_timeout, which is 0 unless set).
//
// Rows stay until somebody deletes them. Deleting one forgets: a late write under its key
// would get in. With redislock, whose fences are microseconds since 1970 or a little more, those that
// nobody has written under for a month are WHERE fence < (the time a month ago).
type SQL struct{ statements }

// SQLOption configures a guard; see [NewSQL].
type SQLOption interface{ apply(*sqlConfig) }

type sqlConfig struct{ table string }

type sqlOptionFunc func(*sqlConfig)

func (f sqlOptionFunc) apply(c *sqlConfig) { f(c) }

// WithTable sets the guard's table, as name or as schema.name, each of at most 63 letters,
// digits and underscores. It is quoted, so in PostgreSQL its case counts. The default is
// holdfast_fences; a repeat replaces.
func WithTable(name string) SQLOption {
	return sqlOptionFunc(func(c *sqlConfig) { c.table = name })
}

// NewSQL returns a guard. It does no I/O; the table has to be there when it is used, see
// [SQL.Schema]. An unknown dialect and an impossible table are [ErrInvalid].
func NewSQL(d Dialect, opts ...SQLOption) (*SQL, error) {
	c := sqlConfig{table: "holdfast_fences"}
	for _, o := range opts {
		if o == nil {
			return nil, invalidf("option: nil")
		}
		o.apply(&c)
	}
	table, err := d.quote(c.table)
	if err != nil {
		return nil, err
	}
	s, err := d.statements(table)
	if err != nil {
		return nil, err
	}
	return &SQL{s}, nil
}

// Schema is the statement that makes the guard's table if it is not there. It belongs into
// the application's migrations, or is run when the application starts; two processes that
// run it at the very same time can make PostgreSQL fail one of them.
func (g *SQL) Schema() string { return g.schema }

// Do runs fn in a transaction of its own, at the database's default isolation level, unless
// a larger fence was seen for the key: then it returns a *[StaleError], and fn does not run.
// If fn returns nil the transaction is committed, else it is rolled back, and fn's error
// comes back as it is. Errors of the database come back as they are too; after one of the
// commit, it is unknown whether the write was kept.
//
// The transaction ends with ctx, so with the context of work under a lock it ends with the
// lock.
func (g *SQL) Do(ctx context.Context, db *sql.DB, key string, fence uint64, fn func(*sql.Tx) error) error {
	if db == nil {
		return invalidf("db: nil")
	}
	if fn == nil {
		return invalidf("fn: nil")
	}
	if err := check(key, fence); err != nil { // before a connection is taken
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	if err := g.Advance(ctx, tx, key, fence); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Advance shows the writer's fence in its transaction. It returns a *[StaleError] if a
// larger one was seen for the key; then, and after any other error, the caller rolls back.
// Else nobody who shows another fence for the key gets further until the transaction ends.
//
// It comes first in the transaction, before the reads that the write will be based on: what
// is read before it may be what an earlier holder is about to change, and in MySQL and
// SQLite fixes the state that later reads see.
func (g *SQL) Advance(ctx context.Context, tx *sql.Tx, key string, fence uint64) error {
	if tx == nil {
		return invalidf("tx: nil")
	}
	if err := check(key, fence); err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, g.advance, key, Number(fence))
	if err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if rows == g.newer {
		return nil
	}
	var seen uint64
	if err := tx.QueryRowContext(ctx, g.seen, key).Scan(&seen); err != nil {
		return err
	}
	if seen > fence {
		return &StaleError{Key: key, Fence: fence, Seen: seen}
	}
	return nil
}

// Wrote looks at the result of a statement that carries the check itself, in a table with a
// column for the fence:
//
//	UPDATE orders SET paid = $1, fence = $2 WHERE id = $3 AND fence <= $2
//
// It returns err if there is one, and [ErrStale] if no row was changed: either a newer
// holder has written it, or it is not there at all. The fence goes in as a [Number].
//
// MySQL does not count a row that has all those values already, as when a holder repeats
// its write, unless the connection is opened with clientFoundRows=true: do so.
func Wrote(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	if result == nil {
		return invalidf("result: nil")
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if rows == 0 {
		return ErrStale
	}
	return nil
}
