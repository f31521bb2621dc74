package fence

import (
	"context"
	"database/sql"
)

// SQL guards data in an SQL database, through database/sql and any driver, or through pgx ([DoPgx],
// [AdvancePgx]). It keeps fences in a table
// of that database, one row for each key, and checks them in the transaction of the write. A refused
// write is rolled back as a whole. An older holder's write never succeeds after a newer holder's.
//
// It is safe at every isolation level. Above READ COMMITTED (MySQL: above REPEATABLE READ), a
// transaction can also fail with the database's serialization error, instead of a *[StaleError] or
// because another writer of the key has just committed. Nothing is written then.
//
// A key's row stays locked until its transaction ends, and other writers under the key wait. So a
// holder paused in its transaction keeps its successor waiting. Let the database end such
// transactions (PostgreSQL: idle_in_transaction_session_timeout; MySQL: wait_timeout) and such waits
// (lock_timeout; innodb_lock_wait_timeout; SQLite: busy_timeout, 0 by default).
//
// Rows stay until you delete them. After that, a late write under the key would succeed. With
// redislock, whose fences are microseconds since 1970 or a little more, WHERE fence < (the time a
// month ago) finds the keys without a write for a month.
type SQL struct {
	statements
	dialect Dialect
}

// SQLOption configures a guard; see [NewSQL].
type SQLOption interface{ apply(*sqlConfig) }

type sqlConfig struct{ table string }

type sqlOptionFunc func(*sqlConfig)

func (f sqlOptionFunc) apply(c *sqlConfig) { f(c) }

// WithTable sets the guard's table, as name or as schema.name, each of at most 63 letters, digits and
// underscores. The name is quoted, so in PostgreSQL its case counts. The default is holdfast_fences.
// If it is given twice, the last one wins.
func WithTable(name string) SQLOption {
	return sqlOptionFunc(func(c *sqlConfig) { c.table = name })
}

// NewSQL returns a guard. It does no I/O. The table must exist when the guard is used, see
// [SQL.Schema]. An unknown dialect or an impossible table name is [ErrInvalid].
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
	return &SQL{s, d}, nil
}

// Schema returns the statement that creates the guard's table if it does not exist. Put it into the
// application's migrations, or run it when the application starts. If two processes run it at the
// same instant, PostgreSQL can make one of them fail.
func (g *SQL) Schema() string { return g.schema }

// Do runs fn in a new transaction, at the database's default isolation level. If a larger fence was
// seen for the key, Do returns a *[StaleError] instead, and fn does not run. If fn returns nil, the
// transaction is committed. Otherwise it is rolled back, and Do returns fn's error unchanged. Errors
// of the database are returned unchanged too. After an error of the commit, it is unknown whether the
// write was kept.
//
// The transaction ends with ctx. So with the context of work under a lock, it ends when the lock is
// lost.
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

// Advance shows the writer's fence in its transaction. It returns a *[StaleError] if a larger fence
// was seen for the key. After that or any other error, the caller must roll back. After success, any
// other writer who shows a fence for the key waits until the transaction ends.
//
// Call it first in the transaction, before the reads that the write will be based on. An earlier
// holder may be about to change what you read before it. In MySQL and SQLite such a read also fixes
// the state that later reads see.
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

// Wrote checks the result of a statement that compares the fence itself, in a table with a column for
// the fence:
//
//	UPDATE orders SET paid = $1, fence = $2 WHERE id = $3 AND fence <= $2
//
// It returns err if that is not nil, and [ErrStale] if no row was changed: either a newer holder has
// written the row, or the row does not exist. Pass the fence as a [Number].
//
// Open MySQL connections with clientFoundRows=true. Otherwise MySQL does not count a row that already
// has all these values, as when a holder repeats its write.
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
