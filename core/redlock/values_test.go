package redlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// loaned is a caller's context, which is used for something else once the call has returned.
type loaned struct {
	context.Context
	t        *testing.T
	returned *atomic.Bool
}

func (l loaned) Value(key any) any {
	if l.returned.Load() {
		l.t.Errorf("%v is asked for after the return", key)
	}
	return l.Context.Value(key)
}

// traced is a slow node that looks for something in its ctx, as clients do that trace.
type traced struct {
	*memlock.Store
	slow time.Duration
}

func (n traced) look(ctx context.Context) {
	time.Sleep(n.slow)
	ctx.Value("trace")
}

func (n traced) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	n.look(ctx)
	return n.Store.Acquire(ctx, c)
}

func (n traced) Renew(ctx context.Context, claims []driver.Claim) []error {
	n.look(ctx)
	return n.Store.Renew(ctx, claims)
}

func (n traced) Release(ctx context.Context, c driver.Claim) error {
	n.look(ctx)
	return n.Store.Release(ctx, c)
}

// core uses the contexts of its calls again.
func TestWhatGoesOnWithoutTheCallerDoesNotUseItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := redlock.New([]driver.Driver{
			traced{memlock.New(), 0}, traced{memlock.New(), 0}, traced{memlock.New(), 50 * time.Millisecond},
		})
		call := func(f func(ctx context.Context)) {
			ctx := loaned{t.Context(), t, new(atomic.Bool)}
			f(ctx)
			ctx.returned.Store(true)
			time.Sleep(time.Second)
		}
		claim := driver.Claim{Name: "name", Token: "token", TTL: time.Minute}
		call(func(ctx context.Context) {
			_, err := store.Acquire(ctx, claim)
			ok(t, err)
		})
		call(func(ctx context.Context) { ok(t, store.Renew(ctx, []driver.Claim{claim})[0]) })
		call(func(ctx context.Context) { ok(t, store.Release(ctx, claim)) })
	})
}
