package main

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/sqllock"
	"github.com/holdfast-go/holdfast/core/sqllock/pgxlisten"
)

const orderName = "order:42"

// shop has its orders and its locks in one database: the orders through pgx, the locks through the same pool.
type shop struct {
	pool  *pgxpool.Pool
	db    *sql.DB
	locks *core.Locker

	// for the story
	before   func(ctx context.Context) context.Context
	careless bool
}

var table = sqllock.WithTable("holdfast_example_locks")

func openShop(ctx context.Context, url string) (*shop, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	locks, err := core.New(sqllock.New(db, sqllock.Postgres, table, sqllock.WithListen(pgxlisten.Connect(url))))
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &shop{pool: pool, db: db, locks: locks}, nil
}

// ship changes the order under its lock, and commits only if the lock is still held.
func (s *shop) ship(ctx context.Context, status string, opts ...core.Option) error {
	return s.locks.Do(ctx, orderName, func(ctx context.Context) error {
		f, err := core.FenceFor(ctx, orderName)
		if err != nil {
			return err
		}
		if s.before != nil {
			ctx = s.before(ctx)
		}
		tx, err := s.pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }() // after the commit it does nothing
		if _, err := tx.Exec(ctx, "UPDATE holdfast_example_orders SET status = $1 WHERE id = 42", status); err != nil {
			return err
		}
		if !s.careless {
			if err := sqllock.HeldInPgx(ctx, tx, orderName, f, table); err != nil {
				return err
			}
		}
		return tx.Commit(ctx)
	}, opts...)
}

func (s *shop) create(ctx context.Context) error {
	schema, err := sqllock.Schema(sqllock.Postgres, table)
	if err != nil {
		return err
	}
	for _, text := range []string{
		schema,
		"CREATE TABLE holdfast_example_orders (id INT PRIMARY KEY, status TEXT NOT NULL)",
		"INSERT INTO holdfast_example_orders VALUES (42, 'new')",
	} {
		if _, err := s.pool.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) drop(ctx context.Context) {
	_, _ = s.pool.Exec(ctx, "DROP TABLE IF EXISTS holdfast_example_orders, holdfast_example_locks") // or they stay
}

func (s *shop) status(ctx context.Context) (status string, err error) {
	err = s.pool.QueryRow(ctx, "SELECT status FROM holdfast_example_orders WHERE id = 42").Scan(&status)
	return status, err
}

func (s *shop) close(ctx context.Context) {
	_ = s.locks.Close(context.WithoutCancel(ctx)) // what is left ends with its TTL
	_ = s.db.Close()
	s.pool.Close()
}
