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

// InTx waits until the caller's transaction is the only one that has called InTx with that
// name, and keeps it so until the transaction ends. It is no lease: there is no TTL to renew
// and no fence, since the lock and the writes of the transaction live and die together. What
// was committed under a name is seen by who gets it next, at isolation READ COMMITTED or if
// InTx comes first in the transaction; so call it first.
//
//	tx, err := db.BeginTx(ctx, nil)
//	…
//	if err := sqllock.InTx(ctx, tx, "order:42"); err != nil {
//		return err // and roll back
//	}
//
// It excludes other calls of InTx in the same database, and no leases: those of the same name
// in a [Store] go on. A second call with the same name returns at once. Two transactions that
// each want what the other one has are a deadlock, of which PostgreSQL and MySQL fail one: take
// several names in the same order everywhere.
//
// It waits until ctx ends. After any error the transaction is of no use: roll it back.
//
// The database is found out by asking its version, which is a round trip. PostgreSQL then
// takes an advisory lock of the transaction, whose number is the first 64 bits of the name's
// SHA-256. MySQL locks a row of its own in the table of the locks, which stays there, one for
// each name; innodb_lock_wait_timeout, 50 s unless set, bounds the wait too, and if the very first
// transaction of a name is rolled back, those that wait for it can be a deadlock. In SQLite there is
// one writer at a time, whatever the name: the transaction becomes that one, through the table
// of the locks, and fails at once if it has read what somebody has written since. Of the
// options it looks at [WithTable].
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
