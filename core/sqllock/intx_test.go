package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
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

// known has the name's row made, where there is one: the first transaction of all is told
// apart in the documentation.
func known(t *testing.T, db *sql.DB, name string, table sqllock.Option) {
	t.Helper()
	tx := begin(t, db)
	ok(t, sqllock.InTx(t.Context(), tx, name, table))
	ok(t, tx.Commit())
}

func TestTransactionsOfOneNameTakeTurns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		db := d.open(t)
		d.exec(t, "CREATE TABLE counters (id BIGINT NOT NULL PRIMARY KEY, value BIGINT NOT NULL)")
		d.exec(t, "INSERT INTO counters VALUES (1, 0)")
		known(t, db, "counter", table)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 10 {
					if err := count(t.Context(), db, table, i == 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		var value int
		ok(t, db.QueryRowContext(t.Context(), "SELECT value FROM counters").Scan(&value))
		if value != 70 {
			t.Errorf("70 counted to %d", value)
		}
	})
}

// count adds one, with a read and a write that nothing but the lock keeps together.
func count(ctx context.Context, db *sql.DB, table sqllock.Option, rollback bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := sqllock.InTx(ctx, tx, "counter", table); err != nil {
		return err
	}
	var value int64
	if err := tx.QueryRowContext(ctx, "SELECT value FROM counters WHERE id = 1").Scan(&value); err != nil {
		return err
	}
	text := fmt.Sprintf("UPDATE counters SET value = %d WHERE id = 1", value+1)
	if _, err := tx.ExecContext(ctx, text); err != nil || rollback {
		return err
	}
	return tx.Commit()
}

func TestInTxWaitsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		d.source = strings.ReplaceAll(d.source, "busy_timeout(20000)", "busy_timeout(0)")
		db := d.open(t)
		known(t, db, "name", table)
		first := begin(t, db)
		ok(t, sqllock.InTx(t.Context(), first, "name", table))
		ok(t, sqllock.InTx(t.Context(), first, "name", table)) // again
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
		got := make(chan error, 1)
		second := begin(t, db)
		go func() { got <- sqllock.InTx(t.Context(), second, "name", table) }()
		select {
		case err := <-got:
			t.Fatalf("it did not wait: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		ok(t, first.Rollback())
		ok(t, <-got)
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
