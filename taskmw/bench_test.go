package taskmw_test

import (
	"context"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

// BenchmarkTask compares a task behind the middleware with one whose handler calls core.Do for a
// name that it knows already: the difference is what the middleware costs.
func BenchmarkTask(b *testing.B) {
	ctx := taskContext(b)
	task := asynq.NewTaskWithHeaders("order:ship", []byte(`{"order_id":42}`), map[string]string{"order": "42"})
	work := func(context.Context, *asynq.Task) error { return nil }
	locks := newLocker(b, memlock.New())
	once, err := locks.With(core.WithWait(0))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		mux  *asynq.ServeMux
	}{
		{"do", muxOf(func(ctx context.Context, t *asynq.Task) error {
			return once.Do(ctx, "order:42", func(ctx context.Context) error { return work(ctx, t) })
		})},
		{"middleware", muxOf(work, taskmw.Middleware(locks, taskmw.WithType("order:ship", "order:{order_id}")))},
		{"middleware/header", muxOf(work, taskmw.Middleware(locks, taskmw.WithType("order:ship", "order:{header:order|int}")))},
		{"unlisted", muxOf(work, taskmw.Middleware(locks, taskmw.WithType("other", "order:{order_id}")))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.mux.ProcessTask(ctx, task); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
