package fence

import (
	"context"
	"time"
)

// PgxTx is what [AdvancePgx] needs of a transaction: a pgx.Tx, or a *pgxpool.Tx. Tag is pgconn.CommandTag,
// and Row is pgx.Row; Go infers both, so this package does not import pgx.
type PgxTx[Tag PgxTag, Row PgxRow] interface {
	Exec(ctx context.Context, sql string, args ...any) (Tag, error)
	QueryRow(ctx context.Context, sql string, args ...any) Row
}

// PgxTag is the result of a statement in pgx.
type PgxTag interface{ RowsAffected() int64 }

// PgxRow is a row in pgx.
type PgxRow interface{ Scan(dest ...any) error }

// PgxDB is what [DoPgx] needs: a *pgxpool.Pool, or a *pgx.Conn.
type PgxDB[Tx any] interface {
	Begin(ctx context.Context) (Tx, error)
}

// pgxOwnTx is a transaction that DoPgx ends.
type pgxOwnTx[Tag PgxTag, Row PgxRow] interface {
	PgxTx[Tag, Row]
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// AdvancePgx is [SQL.Advance] for a transaction of pgx. The guard's dialect must be Postgres.
func AdvancePgx[Tag PgxTag, Row PgxRow](ctx context.Context, g *SQL, tx PgxTx[Tag, Row], key string, fence uint64) error {
	switch {
	case g == nil || g.dialect != Postgres:
		return invalidf("guard: not of the dialect %q", string(Postgres))
	case tx == nil:
		return invalidf("tx: nil")
	}
	if err := check(key, fence); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, g.advance, key, Number(fence))
	if err != nil || tag.RowsAffected() == g.newer {
		return err
	}
	var seen uint64
	if err := tx.QueryRow(ctx, g.seen, key).Scan(&seen); err != nil {
		return err
	}
	return &StaleError{Key: key, Fence: fence, Seen: seen} // in PostgreSQL nothing else leaves the row as it is
}

// rollbackBound is how long a rollback may take. Then pgx closes the connection, and the server rolls back by itself.
const rollbackBound = 5 * time.Second

// DoPgx is [SQL.Do] for pgx: for a *pgxpool.Pool or a *pgx.Conn, and a function that gets a pgx.Tx. The
// guard's dialect must be Postgres.
//
//	err := fence.DoPgx(ctx, guard, pool, "order:42", f, func(tx pgx.Tx) error {
//		_, err := tx.Exec(ctx, "UPDATE orders SET …")
//		return err
//	})
func DoPgx[Tx pgxOwnTx[Tag, Row], Tag PgxTag, Row PgxRow](
	ctx context.Context, g *SQL, db PgxDB[Tx], key string, fence uint64, fn func(Tx) error,
) error {
	switch {
	case db == nil:
		return invalidf("db: nil")
	case fn == nil:
		return invalidf("fn: nil")
	}
	if err := check(key, fence); err != nil { // before a connection is taken
		return err
	}
	tx, err := db.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackBound)
		defer cancel()
		_ = tx.Rollback(ctx) // after the commit it does nothing
	}()
	if err := AdvancePgx(ctx, g, PgxTx[Tag, Row](tx), key, fence); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
