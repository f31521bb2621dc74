package sqltest

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestPgxsOwnPoolsAndTransactionsAreGuarded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := "postgres://postgres@" + servers.Postgres(t).Addr() + "/postgres?sslmode=disable"
	pool, err := pgxpool.New(ctx, url)
	backendtest.OK(t, err)
	defer pool.Close()
	conn, err := pgx.Connect(ctx, url)
	backendtest.OK(t, err)
	defer func() { _ = conn.Close(ctx) }()
	guard, err := fence.NewSQL(fence.Postgres)
	backendtest.OK(t, err)
	for _, text := range []string{guard.Schema(), "CREATE TABLE data (value INT)"} {
		if _, err := pool.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	write := func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO data VALUES (1)")
		return err
	}
	errOwn := errors.New("own")
	for what, err := range map[string]error{
		"the pool":       fence.DoPgx(ctx, guard, pool, "pool", 7, write),
		"the same fence": fence.DoPgx(ctx, guard, pool, "pool", 7, write),
		"a connection":   fence.DoPgx(ctx, guard, conn, "conn", 7, write),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	err = fence.DoPgx(ctx, guard, conn, "pool", 6, write)
	if stale, ok := errors.AsType[*fence.StaleError](err); !ok || stale.Seen != 7 || !errors.Is(err, fence.ErrStale) {
		t.Errorf("an earlier holder: %v", err)
	}
	if err := fence.DoPgx(ctx, guard, pool, "pool", 8, func(tx pgx.Tx) error { return errors.Join(errOwn, write(tx)) }); !errors.Is(err, errOwn) {
		t.Errorf("the function's error: %v", err)
	}
	tx, err := pool.Begin(ctx)
	backendtest.OK(t, err)
	if err := fence.AdvancePgx(ctx, guard, tx, "pool", 7); err != nil { // 8 was rolled back
		t.Errorf("in a transaction of one's own: %v", err)
	}
	if err := errors.Join(write(tx), tx.Commit(ctx)); err != nil {
		t.Error(err)
	}
	var rows int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM data").Scan(&rows); err != nil || rows != 4 {
		t.Errorf("%d rows are written, not 4: %v", rows, err)
	}
	other, err := fence.NewSQL(fence.SQLite)
	backendtest.OK(t, err)
	var none *fence.SQL
	for what, err := range map[string]error{
		"another dialect": fence.DoPgx(ctx, other, pool, "key", 7, write),
		"no guard":        fence.DoPgx(ctx, none, pool, "key", 7, write),
		"no fence":        fence.DoPgx(ctx, guard, pool, "key", 0, write),
	} {
		if !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := fence.DoPgx(ended, guard, pool, "key", 7, write); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}
