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
	for what, err := range map[string]error{
		"the pool":       fence.DoPgx(ctx, guard, pool, "pool", 7, write),
		"the same fence": fence.DoPgx(ctx, guard, pool, "pool", 7, write),
		"a connection":   fence.DoPgx(ctx, guard, conn, "conn", 7, write),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if stale, _ := asStale(fence.DoPgx(ctx, guard, conn, "pool", 6, write)); stale != (fence.StaleError{Key: "pool", Fence: 6, Seen: 7}) {
		t.Errorf("an earlier holder is told %+v", stale)
	}
	tx, err := pool.Begin(ctx)
	backendtest.OK(t, err)
	other, err := fence.NewSQL(fence.SQLite)
	backendtest.OK(t, err)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	errOwn := errors.New("own")
	fails := func(tx pgx.Tx) error { return errors.Join(errOwn, write(tx)) }
	for what, c := range map[string]struct{ err, want error }{
		"the function's error":     {fence.DoPgx(ctx, guard, pool, "pool", 8, fails), errOwn},
		"which has rolled back":    {errors.Join(fence.AdvancePgx(ctx, guard, tx, "pool", 7), write(tx), tx.Commit(ctx)), nil},
		"another dialect":          {fence.DoPgx(ctx, other, pool, "key", 7, write), fence.ErrInvalid},
		"no guard":                 {fence.DoPgx(ctx, nil, pool, "key", 7, write), fence.ErrInvalid},
		"no fence":                 {fence.DoPgx(ctx, guard, pool, "key", 0, write), fence.ErrInvalid},
		"a context that has ended": {fence.DoPgx(ended, guard, pool, "key", 7, write), context.Canceled},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v", what, c.err)
		}
	}
	var rows int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM data").Scan(&rows); err != nil || rows != 4 {
		t.Errorf("%d rows are written, not 4: %v", rows, err)
	}
}
