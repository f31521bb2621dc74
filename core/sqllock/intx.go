package sqllock

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// InTx waits until the caller's transaction is the only one that has called InTx with this name. It
// stays the only one until it ends. This is not a lease: there is no TTL and no fence, because the
// lock and the writes of the transaction live and die together.
//
//	tx, err := db.BeginTx(ctx, nil)
//	…
//	if err := sqllock.InTx(ctx, tx, "order:42"); err != nil {
//		return err // and roll back
//	}
//
// Call InTx first in the transaction. What you read after it then includes everything that was
// committed under the name before. In PostgreSQL this requires READ COMMITTED, the default. At higher
// levels PostgreSQL reads a snapshot from before the wait, and can fail a write with a serialization
// error.
//
// InTx excludes other calls of InTx in the same database. It does not exclude leases of the same name
// in a [Store]; for work under a lease, see [HeldInTx]. A second call with the same name returns at once. Take several names in the same
// order everywhere. Otherwise two transactions can deadlock, and PostgreSQL and MySQL then fail one
// of them.
//
// InTx waits until ctx ends. After any error, roll the transaction back.
//
// InTx first asks the database for its version, which is a round trip, or two in MySQL. The rest depends on
// the database:
//
//   - PostgreSQL takes an advisory lock of the transaction. Its number is the first 64 bits of the
//     name's SHA-256.
//   - MySQL locks a separate row in the table of the locks, one for each name, which stays there. The
//     wait is also limited by innodb_lock_wait_timeout (default 50 s). If the very first transaction
//     of a name is rolled back, its waiters can deadlock.
//   - SQLite allows one writer at a time, whatever the name. The transaction becomes that writer,
//     through the table of the locks. It fails at once if it has read something that somebody has
//     written since.
//
// Of the options, only [WithTable] has an effect.
func InTx(ctx context.Context, tx *sql.Tx, name string, opts ...Option) error {
	if tx == nil {
		return errors.New("sqllock: InTx: nil *sql.Tx")
	}
	if err := checkInTx(name); err != nil {
		return err
	}
	d, err := dialectOf(ctx, tx)
	if err != nil {
		return err
	}
	c, err := d.configure(opts)
	if err != nil {
		return err
	}
	switch d {
	case MySQL:
		_, err = tx.ExecContext(ctx, d.statement(mysqlInTx, c.table).text, inTxRows+name)
		return err
	case SQLite:
		return becomeWriter(ctx, tx, d.statement(sqliteInTx, c.table).text)
	default:
		_, err = tx.ExecContext(ctx, takeAdvisory, advisory(name))
		return err
	}
}

// InPgx is [InTx] for a transaction of pgx. It takes no options.
func InPgx[Tag interface{ RowsAffected() int64 }](ctx context.Context, tx PgxTx[Tag], name string) error {
	if tx == nil {
		return errors.New("sqllock: InPgx: nil transaction")
	}
	if err := checkInTx(name); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, takeAdvisory, advisory(name))
	return err
}

func checkInTx(name string) error {
	if name == "" || len(name) > maxInTx {
		return fmt.Errorf("sqllock: InTx: a name of %d bytes, not of 1 to %d", len(name), maxInTx)
	}
	return nil
}

const takeAdvisory = "SELECT pg_catalog.pg_advisory_xact_lock($1)"

const (
	maxInTx  = 200
	inTxRows = " " // begins their names, and those of no other rows

	mysqlInTx = `INSERT INTO TABLE_NAME (name, token, label, fence, expires) VALUES ($1, '', '', 0, 0)
ON DUPLICATE KEY UPDATE name = VALUES(name)`
	sqliteInTx = `DELETE FROM TABLE_NAME WHERE false`
)

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
	return fmt.Errorf("sqllock: InTx: unknown database %.60q", version)
}

// advisory is the number that stands for a name.
func advisory(name string) int64 {
	sum := sha256.Sum256([]byte("holdfast:" + name))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // G115: any 64 bits will do
}

// becomeWriter makes the transaction the only one that can write: a statement that writes
// nothing is enough.
func becomeWriter(ctx context.Context, tx *sql.Tx, text string) error {
	for {
		_, err := tx.ExecContext(ctx, text)
		if sqliteCode(err) != sqliteBusy { // in full: others of the kind do not pass by
			return err
		}
		if !otherWriter(ctx) {
			return errors.Join(ctx.Err(), err)
		}
	}
}
