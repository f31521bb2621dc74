package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/sqllock"
)

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	ok(t, err)
	t.Cleanup(func() { _ = tx.Rollback() }) // most tests have ended it
	return tx
}

// What is read after it is all that was committed under the name before.
func TestInTxWaitsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		d.source = strings.ReplaceAll(d.source, "busy_timeout(20000)", "busy_timeout(0)")
		db := d.open(t)
		d.exec(t, "CREATE TABLE data (value BIGINT NOT NULL)")
		d.exec(t, "INSERT INTO data VALUES (0)")
		known := begin(t, db) // the first transaction of all is told apart in the documentation
		ok(t, sqllock.InTx(t.Context(), known, "name", table))
		ok(t, known.Commit())
		first := begin(t, db)
		ok(t, sqllock.InTx(t.Context(), first, "name", table))
		ok(t, sqllock.InTx(t.Context(), first, "name", table)) // again
		_, err := first.ExecContext(t.Context(), "UPDATE data SET value = 1")
		ok(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := sqllock.InTx(ctx, begin(t, db), "name", table); err == nil {
			t.Error("two transactions have the name")
		} else if ctx.Err() == nil {
			t.Errorf("before its context has ended: %v", err)
		}
		if d.dialect != sqllock.SQLite { // which has one writer
			for _, other := range []string{"Name", "name ", "nam", "é"} {
				ok(t, sqllock.InTx(t.Context(), begin(t, db), other, table))
			}
			x := acquire(t, locker(t, db, d.dialect, table), "name") // no lease is kept out
			ok(t, x.Release(t.Context()))
		}
		got, second := make(chan error, 1), begin(t, db)
		go func() { got <- sqllock.InTx(t.Context(), second, "name", table) }()
		select {
		case err := <-got:
			t.Fatalf("it did not wait: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		ok(t, first.Commit())
		ok(t, <-got)
		var value int
		if ok(t, second.QueryRowContext(t.Context(), "SELECT value FROM data").Scan(&value)); value != 1 {
			t.Errorf("it reads %d", value)
		}
	})
}

func TestInTxRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	d := sqlite(t, "")
	db := d.open(t)
	tx := begin(t, db)
	for what, err := range map[string]error{
		"nil":   sqllock.InTx(t.Context(), nil, "name"),
		"empty": sqllock.InTx(t.Context(), tx, ""),
		"long":  sqllock.InTx(t.Context(), tx, strings.Repeat("x", 201)),
		"table": sqllock.InTx(t.Context(), tx, "name", sqllock.WithTable("a b")),
		"none":  sqllock.InTx(t.Context(), tx, "name"), // there is no such table
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	ok(t, tx.Rollback())
	if err := sqllock.InTx(t.Context(), tx, "name"); !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("a transaction that is over: %v", err)
	}
}
