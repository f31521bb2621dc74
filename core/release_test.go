package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// A caller that has gone does not wait, even where answers were quick so far.
func TestAReleaseInAnEndedContextReturnsAtOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		store := memlock.New()
		locks, err := core.New(store)
		b.ok(err)
		for name, acquire := range map[string]func(ctx context.Context) (*core.Lease, error){
			"one name":      func(ctx context.Context) (*core.Lease, error) { return locks.Acquire(ctx, "one") },
			"several names": func(ctx context.Context) (*core.Lease, error) { return locks.AcquireAll(ctx, []string{"a", "b", "c"}) },
		} {
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			x, err := acquire(ctx)
			b.ok(err)
			store.SetDelay(time.Hour)
			cancel()
			began := time.Now()
			if err := x.Release(ctx); err == nil {
				b.Errorf("%s: released, and nothing was answered", name)
			}
			if took := time.Since(began); took > 50*time.Millisecond {
				b.Errorf("%s: it took %v", name, took)
			}
			store.SetDelay(0)
		}
		b.ok(locks.Close(b.Context()))
	})
}
