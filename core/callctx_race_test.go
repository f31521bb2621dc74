//go:build race

package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// Package callctx has all the ways of use; these show that core's calls are watched.
func TestADriverThatUsesTheContextOfACallAfterItIsFound(t *testing.T) {
	t.Parallel()
	nothing, stop := func(context.Context) {}, context.CancelFunc(func() {})
	for what, c := range map[string]struct {
		during, after func(ctx context.Context)
		says          string
	}{
		"Err": {nothing, func(ctx context.Context) { _ = ctx.Err() }, "used after the call"},
		"a context made of it that stays": {
			func(ctx context.Context) { _, stop = context.WithCancel(ctx) }, //nolint:gosec // G118: called below
			nothing, "outlives the call",
		},
		"one made of it by way of a value": {
			func(ctx context.Context) {
				_, stop = context.WithCancel(context.WithValue(ctx, madeKey{}, true))
				stop()
			}, nothing, "",
		},
	} {
		virtual(t, func(b *bench) {
			var kept context.Context
			locks, err := core.New(&hooked{Driver: b.store, acquire: func(ctx context.Context, claim driver.Claim) (driver.Grant, error) {
				kept = ctx //nolint:fatcontext // it is used after the call
				c.during(ctx)
				return b.store.Acquire(ctx, claim)
			}})
			b.ok(err)
			got := found(func() {
				b.ok(second(locks.Acquire(context.Background(), "name")))
				c.after(kept)
			})
			if !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
				b.Errorf("%s: %q, not %q", what, got, c.says)
			}
			_ = found(stop)                    // what it was made of is another call's by now
			_ = locks.Close(b.in(time.Minute)) // the lease was left
		})
	}
}

// found runs f and returns what it panics with.
func found(f func()) (what string) {
	defer func() { what, _ = recover().(string) }()
	f()
	return ""
}
