package fence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/fence"
)

// silent is a transaction of pgx whose server falls silent after the first statement. That has changed so many rows.
type silent struct{ changed silentTag }

type (
	silentTag int64
	silentRow struct{}
)

var errSilent = errors.New("silent")

func (t silentTag) RowsAffected() int64 { return int64(t) }
func (silentRow) Scan(...any) error     { return errSilent }

func (s silent) Begin(context.Context) (silent, error)                   { return s, nil }
func (s silent) Exec(context.Context, string, ...any) (silentTag, error) { return s.changed, nil }
func (silent) QueryRow(context.Context, string, ...any) silentRow        { return silentRow{} }
func (silent) Commit(ctx context.Context) error                          { <-ctx.Done(); return ctx.Err() }
func (silent) Rollback(ctx context.Context) error                        { <-ctx.Done(); return ctx.Err() }

func TestARollbackToASilentServerEnds(t *testing.T) {
	t.Parallel()
	g, err := fence.NewSQL(fence.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		refused, began := errors.New("refused"), time.Now()
		if err := fence.DoPgx(t.Context(), g, silent{1}, "key", 1, func(silent) error { return refused }); !errors.Is(err, refused) {
			t.Error(err)
		}
		if d := time.Since(began); d > time.Minute {
			t.Errorf("after %s", d)
		}
		if err := fence.AdvancePgx(t.Context(), g, silent{}, "key", 1); !errors.Is(err, errSilent) {
			t.Errorf("whoever has the newer fence: %v", err)
		}
		work := func(silent) error { return nil }
		for what, err := range map[string]error{
			"guard":       fence.AdvancePgx(t.Context(), nil, silent{}, "key", 1),
			"transaction": fence.AdvancePgx[silentTag, silentRow](t.Context(), g, nil, "key", 1),
			"pool":        fence.DoPgx[silent, silentTag, silentRow](t.Context(), g, nil, "key", 1, work),
			"work":        fence.DoPgx[silent, silentTag, silentRow](t.Context(), g, silent{}, "key", 1, nil),
		} {
			if !errors.Is(err, fence.ErrInvalid) {
				t.Errorf("no %s: %v", what, err)
			}
		}
	})
}
