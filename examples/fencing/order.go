package main

import (
	"context"
	"database/sql"
	"time"

	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/core/fence"
)

const (
	orderName = "order:42"
	ttl       = time.Second
	fromA     = "cancelled"
	fromB     = "shipped"
)

func openOrders(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	guard, err := fence.NewSQL(fence.SQLite)
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, status TEXT NOT NULL)",
		"INSERT OR IGNORE INTO orders VALUES (42, 'new')",
		guard.Schema(),
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			_ = db.Close()
			return nil, err
		}
	}
	return db, nil
}

// writeOrder is what a program does to be safe: it writes inside the guard's transaction.
func writeOrder(ctx context.Context, db *sql.DB, f uint64, status string, fenced bool) error {
	const update = "UPDATE orders SET status = ? WHERE id = 42"
	if !fenced {
		_, err := db.ExecContext(ctx, update, status)
		return err
	}
	guard, err := fence.NewSQL(fence.SQLite)
	if err != nil {
		return err
	}
	return guard.Do(ctx, db, orderName, f, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, update, status)
		return err
	})
}

func readOrder(ctx context.Context, db *sql.DB) (status string, err error) {
	err = db.QueryRowContext(ctx, "SELECT status FROM orders WHERE id = 42").Scan(&status)
	return status, err
}
