package sqllock

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
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
// in a [Store]. A second call with the same name returns at once. Take several names in the same
// order everywhere. Otherwise two transactions can deadlock, and PostgreSQL and MySQL then fail one
// of them.
//
// InTx waits until ctx ends. After any error, roll the transaction back.
//
// InTx first asks the database for its version, which is a round trip. The rest depends on the
// database:
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
	switch {
	case tx == nil:
		return errors.New("sqllock: InTx: nil *sql.Tx")
	case name == "" || len(name) > maxInTx:
		return fmt.Errorf("sqllock: InTx: a name of %d bytes, not of 1 to %d", len(name), maxInTx)
	}
	d, err := dialectOf(ctx, tx)
	if err != nil {
		return err
	}
	table, err := d.tableOf(opts)
	if err != nil {
		return err
	}
	switch d {
	case MySQL:
		_, err = tx.ExecContext(ctx, d.statement(mysqlInTx, table).text, inTxRows+name)
		return err
	case SQLite:
		return becomeWriter(ctx, tx, d.statement(sqliteInTx, table).text)
	default:
		_, err = tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", advisory(name))
		return err
	}
}

const (
	maxInTx  = 200
	inTxRows = " " // begins their names, and those of no other rows

	mysqlInTx = `INSERT INTO TABLE_NAME (name, token, label, fence, expires) VALUES ($1, '', '', 0, 0)
ON DUPLICATE KEY UPDATE name = VALUES(name)`
	sqliteInTx = `DELETE FROM TABLE_NAME WHERE false`
)

// dialectOf asks in a way that no transaction of PostgreSQL's fails of.
func dialectOf(ctx context.Context, tx *sql.Tx) (Dialect, error) {
	var version string
	if err := tx.QueryRowContext(ctx, "SELECT version()").Scan(&version); err != nil {
		if tx.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version) == nil {
			return SQLite, nil
		}
		return "", err
	}
	switch {
	case strings.HasPrefix(version, "PostgreSQL "):
		return Postgres, nil
	case version != "" && version[0] >= '1' && version[0] <= '9':
		return MySQL, nil
	}
	return "", fmt.Errorf("sqllock: InTx: unknown database %.60q", version)
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
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(5*time.Millisecond + rand.N(20*time.Millisecond)): //nolint:gosec // G404: jitter is no secret
		}
	}
}
