package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

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
// If the name is no longer held with this fence, the error matches [fence.ErrStale]. A grant that goes from one
// goroutine of a process to the next has a block of fences, all of which count while the grant lasts. After any error,
// roll the transaction back. Readers that share the name have one fence; holders of a limited number have none, and
// HeldInTx refuses 0.
//
// At REPEATABLE READ and SERIALIZABLE, PostgreSQL can also fail the statement with a serialization error, because
// the lease was renewed after the transaction began. Use READ COMMITTED, the default, or try again.
//
// Of the options, only [WithTable] has an effect. It must be the Store's.
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
	var there int
	args := stmt.args([]any{name, int64(f)}) //nolint:gosec // G115: checkHeld has looked
	err = tx.QueryRowContext(ctx, stmt.text, args...).Scan(&there)
	if errors.Is(err, sql.ErrNoRows) {
		return notHeld(name, f)
	}
	return err
}

// PgxTx is what [InPgx] and [HeldInPgx] need of a transaction: a pgx.Tx, or a *pgxpool.Tx. Tag is
// pgconn.CommandTag; Go infers it.
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
	if d == SQLite {
		return d.statement("UPDATE TABLE_NAME SET turn = turn WHERE "+heldWith+" RETURNING 1", c.table), nil
	}
	return d.statement("SELECT 1 FROM TABLE_NAME WHERE "+heldWith+" FOR UPDATE", c.table), nil
}

// The fences of a tenure are those from turn to fence; see type row.
const heldWith = `name = $1 AND CASE WHEN turn < 0 THEN -turn ELSE turn END <= $2 AND fence >= $2 AND expires > NOW
	AND token NOT IN ('', '` + byPermits + `') AND token NOT LIKE '` + keptFor + `%' AND token NOT LIKE '` + handoffFor + `%'`
