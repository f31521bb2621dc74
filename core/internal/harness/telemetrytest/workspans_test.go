package telemetrytest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
)

// tree is what was exported since the last time: each span with its parent's name, sorted.
func (b *bench) tree() string {
	b.Helper()
	synctest.Wait()
	names := make(map[oteltrace.SpanID]string)
	for _, s := range b.spans.GetSpans() {
		names[s.SpanContext.SpanID()] = s.Name
	}
	var lines []string
	for _, s := range b.spans.GetSpans() {
		lines = append(lines, names[s.Parent.SpanID()]+" > "+s.Name)
	}
	b.spans.Reset()
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestSpansOfTheWorkAreChildrenOfTheHold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		tracer := trace.NewTracerProvider(trace.WithSyncer(b.spans)).Tracer("test")
		works := func(ctx context.Context) error {
			_, span := tracer.Start(ctx, "query")
			span.End()
			return nil
		}
		const one = " > request\nhold order:{id} > query\nrequest > acquire order:{id}\nrequest > hold order:{id}"
		for what, row := range map[string]struct {
			do   func(ctx context.Context) error
			want string
		}{
			"Do": {func(ctx context.Context) error { return b.locks.Do(ctx, "a", works) }, one},
			"a re-entry": {func(ctx context.Context) error {
				return b.locks.Do(ctx, "a", func(ctx context.Context) error { return b.locks.Do(ctx, "a", works) })
			}, one},
			"a lease within another": {func(ctx context.Context) error {
				return b.locks.Do(ctx, "a", func(ctx context.Context) error {
					return b.locks.Do(ctx, "b", works, core.WithTemplate("b"))
				}, core.WithTemplate("a"))
			}, " > request\nhold a > acquire b\nhold a > hold b\nhold b > query\nrequest > acquire a\nrequest > hold a"},
		} {
			ctx, request := tracer.Start(b.Context(), "request")
			b.ok(row.do(ctx))
			request.End()
			if got := b.tree(); got != row.want {
				b.Errorf("%s: these spans are below each other:\n%s\nnot\n%s", what, got, row.want)
			}
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
