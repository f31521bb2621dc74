//go:build race

package core_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// greedy is a driver that keeps the context of its last acquire, against its promise.
type greedy struct {
	*memlock.Store
	during func(ctx context.Context)
	kept   context.Context
}

func (g *greedy) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g.kept = ctx
	if g.during != nil {
		g.during(ctx)
	}
	return g.Store.Acquire(ctx, c)
}

// found runs f and returns what it panics with.
func found(f func()) (what string) {
	defer func() { what, _ = recover().(string) }()
	f()
	return ""
}

func TestADriverThatUsesTheContextOfACallAfterItIsFound(t *testing.T) {
	t.Parallel()
	var stop context.CancelFunc
	for what, c := range map[string]struct {
		during, after func(ctx context.Context)
		says          string
	}{
		"Err":      {after: func(ctx context.Context) { _ = ctx.Err() }, says: "used after the call"},
		"Done":     {after: func(ctx context.Context) { _ = ctx.Done() }, says: "used after the call"},
		"Deadline": {after: func(ctx context.Context) { _, _ = ctx.Deadline() }, says: "used after the call"},
		"Value":    {after: func(ctx context.Context) { _ = ctx.Value("") }, says: "used after the call"},
		"a context made of it late": {
			after: func(ctx context.Context) { _, cancel := context.WithCancel(ctx); cancel() }, says: "used after the call",
		},
		"a context made of it that stays": {
			during: func(ctx context.Context) { _, stop = context.WithCancel(ctx) }, //nolint:gosec // G118: called below
			after:  func(context.Context) {}, says: "outlives the call",
		},
		"a context made of it that ends": {
			during: func(ctx context.Context) { _, stop = context.WithTimeout(ctx, time.Millisecond); stop() },
			after:  func(context.Context) {}, says: "",
		},
		"one made of it by way of a value": {
			during: func(ctx context.Context) {
				_, stop = context.WithCancel(context.WithValue(ctx, "key", "value")) //nolint:revive,staticcheck // nobody reads it
				stop()
			},
			after: func(context.Context) {}, says: "",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			stop = func() {}
			d := &greedy{Store: memlock.New(), during: c.during}
			locks, err := core.New(d)
			if err != nil {
				t.Fatal(err)
			}
			got := found(func() {
				if _, err := locks.Acquire(context.Background(), "name"); err != nil {
					t.Error(err)
				}
				c.after(d.kept)
			})
			if !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
				t.Errorf("%s: %q, not %q", what, got, c.says)
			}
			_ = found(stop) // what it was made of is another call's by now
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_ = locks.Close(ctx) // the lease was left
		})
	}
}
