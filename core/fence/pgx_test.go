package fence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/fence"
)

// silent is a transaction of pgx whose server falls silent after the first statement.
type silent struct{}

type (
	silentTag struct{}
	silentRow struct{}
)

func (silentTag) RowsAffected() int64 { return 1 }
func (silentRow) Scan(...any) error   { return nil }

func (s silent) Begin(context.Context) (silent, error)                 { return s, nil }
func (silent) Exec(context.Context, string, ...any) (silentTag, error) { return silentTag{}, nil }
func (silent) QueryRow(context.Context, string, ...any) silentRow      { return silentRow{} }
func (silent) Commit(ctx context.Context) error                        { <-ctx.Done(); return ctx.Err() }
func (silent) Rollback(ctx context.Context) error                      { <-ctx.Done(); return ctx.Err() }

func TestARollbackToASilentServerEnds(t *testing.T) {
	t.Parallel()
	g, err := fence.NewSQL(fence.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		refused, began := errors.New("refused"), time.Now()
		if err := fence.DoPgx(t.Context(), g, silent{}, "key", 1, func(silent) error { return refused }); !errors.Is(err, refused) {
			t.Error(err)
		}
		if d := time.Since(began); d > time.Minute {
			t.Errorf("after %s", d)
		}
		if err := fence.AdvancePgx(t.Context(), nil, silent{}, "key", 1); !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("without a guard: %v", err)
		}
	})
}
