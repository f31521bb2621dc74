package telemetrytest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

// parents are the exported spans, each with its parent's name.
func (b *bench) parents() map[string]string {
	b.Helper()
	synctest.Wait()
	names := make(map[oteltrace.SpanID]string)
	for _, s := range b.spans.GetSpans() {
		names[s.SpanContext.SpanID()] = s.Name
	}
	parents := make(map[string]string)
	for _, s := range b.spans.GetSpans() {
		parents[s.Name] = names[s.Parent.SpanID()]
	}
	b.spans.Reset()
	return parents
}

func (b *bench) parentIs(of map[string]string, child, parent string) {
	b.Helper()
	if got, ok := of[child]; !ok || got != parent {
		b.Errorf("the parent of %q is %q, not %q: %v", child, got, parent, of)
	}
}

func TestSpansOfTheWorkAreChildrenOfTheHold(t *testing.T) {
	t.Parallel()
	const hold = "hold order:{id}"
	virtual(t, func(b *bench) {
		provider := trace.NewTracerProvider(trace.WithSyncer(b.spans))
		b.locks = b.locker(b.net, core.WithTemplate(template), newTelemetry(b.T,
			telemetry.WithTracerProvider(provider), telemetry.WithSpans()).Option())
		tracer := provider.Tracer("test")
		works := func(ctx context.Context) error {
			_, span := tracer.Start(ctx, "query")
			span.End()
			return nil
		}
		for what, do := range map[string]func(ctx context.Context){
			"Do":    func(ctx context.Context) { b.ok(b.locks.Do(ctx, "a", works)) },
			"DoAll": func(ctx context.Context) { b.ok(b.locks.DoAll(ctx, []string{"a"}, works)) },
			"Acquire": func(ctx context.Context) {
				x, err := b.locks.Acquire(ctx, "a")
				b.ok(err)
				b.ok(works(x.Context()))
				b.ok(x.Release(ctx))
			},
			"a re-entry": func(ctx context.Context) {
				b.ok(b.locks.Do(ctx, "a", func(ctx context.Context) error { return b.locks.Do(ctx, "a", works) }))
			},
			"a wait": func(ctx context.Context) {
				x := b.acquire(b.other())
				time.AfterFunc(time.Second, func() { _ = x.Release(context.Background()) })
				b.ok(b.locks.Do(ctx, "order:42", works))
			},
		} {
			ctx, request := tracer.Start(b.Context(), "request")
			do(ctx)
			request.End()
			of := b.parents()
			b.parentIs(of, "query", hold)
			b.parentIs(of, hold, "request")
			b.parentIs(of, "acquire order:{id}", "request")
			if b.Failed() {
				b.Fatal(what)
			}
		}

		ctx, request := tracer.Start(b.Context(), "request")
		b.ok(b.locks.Do(ctx, "a", func(ctx context.Context) error {
			return b.locks.Do(ctx, "b", works, core.WithTemplate("b"))
		}, core.WithTemplate("a")))
		request.End()
		of := b.parents()
		for child, parent := range map[string]string{"query": "hold b", "hold b": "hold a", "acquire b": "hold a", "hold a": "request"} {
			b.parentIs(of, child, parent)
		}
	})
}

// A call of the work that is over in the end ends its own span only.
func TestALeaseThatNobodyGetsHasItsSpanBesideTheOuterOne(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, _ := b.request()
		b.ok(b.locks.Do(ctx, "outer", func(ctx context.Context) error {
			gone, leave := context.WithCancel(ctx)
			b.net.Delay(time.Second, time.Second)
			time.AfterFunc(time.Millisecond, leave)
			_, err := b.locks.Acquire(gone, "inner")
			b.is(err, context.Canceled)
			b.net.Heal()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			for _, s := range b.spans.GetSpans() {
				if s.Name == "hold "+template && s.EndTime.Sub(s.StartTime) > time.Second {
					b.Errorf("the outer hold ended early: %v", s)
				}
			}
			return nil
		}))
	})
}
