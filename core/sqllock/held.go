package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/core/fence"
)

// HeldInTx makes sure, inside a transaction that writes what a lock protects, that the lock is still held.
// It is for data in the database of the locks. A process that was paused for longer than its lease cannot
// commit such a transaction any more.
//
//	err := locks.Do(ctx, "order:42", func(ctx context.Context) error {
//		f, err := core.FenceFor(ctx, "order:42")
//		…
//		tx, err := db.BeginTx(ctx, nil)
//		…
//		defer tx.Rollback()
//		if _, err := tx.ExecContext(ctx, "UPDATE orders SET …"); err != nil {
//			return err
//		}
//		if err := sqllock.HeldInTx(ctx, tx, "order:42", f); err != nil {
//			return err // and roll back
//		}
//		return tx.Commit()
//	})
//
// Call it last, right before the commit. It locks the lease's row until the transaction ends, so nobody can
// take the name before the writes are visible. Renewals wait for that, too: in a transaction that goes on for
// longer than the TTL, the lease would be lost.
//
// If the name is no longer held with this fence, the error matches [fence.ErrStale]. After any error, roll the
// transaction back. Readers that share the name have one fence; holders of a limited number have none, and HeldInTx
// refuses 0.
//
// A grant can go from one goroutine of a process to the next. Each of these turns has its own fence, and the name stays
// taken between them. A check with one fence, once committed, makes all smaller ones stale. So a turn that has ended cannot
// commit after a later turn has. To refuse it from the beginning of the later turn, make this call the first one there, too,
// in a transaction of its own.
//
// At REPEATABLE READ and SERIALIZABLE, PostgreSQL can also fail the statement with a serialization error, because
// the lease was renewed after the transaction began. Use READ COMMITTED, the default, or try again. MariaDB fails it with
// error 1020 at REPEATABLE READ, its default, if innodb_snapshot_isolation is on, as it is from 11.6.2.
//
// It first asks the database for its version, which is a round trip, or two in MySQL. Of the options, only [WithTable] has an
// effect. It must be the Store's.
func HeldInTx(ctx context.Context, tx *sql.Tx, name string, f uint64, opts ...Option) error {
	if tx == nil {
		return errors.New("sqllock: HeldInTx: nil *sql.Tx")
	}
	if err := checkHeld(name, f); err != nil {
		return err
	}
	d, err := dialectOf(ctx, tx)
	if err != nil {
		return err
	}
	stmt, err := d.heldStatement(opts)
	if err != nil {
		return err
	}
	held, err := d.heldIn(ctx, tx, stmt, name, int64(f)) //nolint:gosec // G115: checkHeld has looked
	if err == nil && !held {
		err = notHeld(name, f)
	}
	return err
}

// dialectOf asks in a way that no transaction of PostgreSQL's fails of, and that runs nobody else's function there.
func dialectOf(ctx context.Context, tx *sql.Tx) (Dialect, error) {
	var version string
	asks := func(query string) error { return tx.QueryRowContext(ctx, query).Scan(&version) }
	if asks("SELECT pg_catalog.version()") == nil {
		if strings.HasPrefix(version, "PostgreSQL ") {
			return Postgres, nil
		}
		return "", unknownDatabase(version)
	}
	if err := asks("SELECT version()"); err != nil {
		if asks("SELECT sqlite_version()") == nil {
			return SQLite, nil
		}
		return "", err
	}
	if version != "" && version[0] >= '1' && version[0] <= '9' {
		return MySQL, nil
	}
	return "", unknownDatabase(version)
}

func unknownDatabase(version string) error {
	return fmt.Errorf("sqllock: HeldInTx: unknown database %.60q", version)
}

func (d Dialect) heldIn(ctx context.Context, tx *sql.Tx, stmt statement, name string, f int64) (held bool, err error) {
	result, err := tx.ExecContext(ctx, stmt.text, stmt.args([]any{name, f})...)
	if err != nil {
		return false, err
	}
	var n int64
	if d == MySQL { // it does not count a row that stays as it was; see mysqlRenew
		n, err = result.LastInsertId()
	} else {
		n, err = result.RowsAffected()
	}
	return n > 0, err
}

// PgxTx is what [HeldInPgx] needs of a transaction: a pgx.Tx, or a *pgxpool.Tx. Tag is pgconn.CommandTag; Go infers it.
type PgxTx[Tag interface{ RowsAffected() int64 }] interface {
	Exec(ctx context.Context, sql string, args ...any) (Tag, error)
}

// HeldInPgx is [HeldInTx] for a transaction of pgx.
func HeldInPgx[Tag interface{ RowsAffected() int64 }](ctx context.Context, tx PgxTx[Tag], name string, f uint64, opts ...Option) error {
	if tx == nil {
		return errors.New("sqllock: HeldInPgx: nil transaction")
	}
	if err := checkHeld(name, f); err != nil {
		return err
	}
	stmt, err := Postgres.heldStatement(opts)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, stmt.text, name, int64(f)) //nolint:gosec // G115: checkHeld has looked
	if err == nil && tag.RowsAffected() == 0 {
		err = notHeld(name, f)
	}
	return err
}

func checkHeld(name string, f uint64) error {
	if name == "" || f == 0 || f > fence.Max {
		return fmt.Errorf("sqllock: %.200q, fence %d: no name, or no fence", name, f)
	}
	return nil
}

func notHeld(name string, f uint64) error {
	return fmt.Errorf("sqllock: %.200q is no longer held with the fence %d: %w", name, f, fence.ErrStale)
}

func (d Dialect) heldStatement(opts []Option) (statement, error) {
	c, err := d.configure(opts)
	if err != nil {
		return statement{}, err
	}
	text := held
	if d == MySQL {
		text = mysqlHeld
	}
	return d.statement(text, c.table), nil
}

// The fences of a block that count are those from turn to fence; see type row. The check moves turn forward: an earlier
// turn of the grant, whose lease has ended, is refused from then on. A name that is free has no time left, and one that is kept, or
// held by permits, has no turn.
const (
	held      = `UPDATE TABLE_NAME SET turn = CASE WHEN turn < 0 THEN -$2 ELSE turn END WHERE ` + heldWith
	mysqlHeld = `UPDATE TABLE_NAME SET turn = IF(LAST_INSERT_ID(fence) > 0 AND turn < 0, -$2, turn) WHERE ` + heldWith

	heldWith = `name = $1 AND (turn = $2 OR turn < 0 AND -turn <= $2) AND fence >= $2 AND expires > NOW`
)
