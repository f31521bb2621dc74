package telemetrytest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

// request begins the span that the spans of leases belong to. It goes to no exporter.
func (b *bench) request() (context.Context, oteltrace.SpanContext) {
	ctx, span := trace.NewTracerProvider().Tracer("test").Start(b.Context(), "request")
	span.End() // before its children: they are told of later
	return ctx, span.SpanContext()
}

// spansSay fails the test unless exactly these spans were exported, all of them children of
// the parent, at the times since began that the lines say.
func (b *bench) spansSay(parent oteltrace.SpanContext, began time.Time, want ...string) {
	b.Helper()
	synctest.Wait()
	var got []string
	for _, s := range b.spans.GetSpans() {
		if s.Parent.SpanID() != parent.SpanID() || s.SpanContext.TraceID() != parent.TraceID() {
			b.Errorf("%s is no child of the request", s.Name)
		}
		line := fmt.Sprintf("%s %s-%s", s.Name, s.StartTime.Sub(began), s.EndTime.Sub(began))
		for _, kv := range s.Attributes {
			if kv.Key == "distlock.fence" && kv.Value.AsInt64() > 0 {
				kv = attribute.String("distlock.fence", "some")
			}
			line += " " + string(kv.Key) + "=" + kv.Value.String()
		}
		if s.Status.Code == codes.Error {
			line += " failed: " + s.Status.Description
		}
		got = append(got, line)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		b.Errorf("spans\n\t%s\nnot\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	b.spans.Reset()
}

const (
	acquireSpan = "acquire order:{id} "
	holdSpan    = "hold order:{id} "
	templateIs  = " distlock.template=order:{id}"
)

func TestALeaseIsTwoSpansOfTheCallersTrace(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, parent := b.request()
		began := time.Now()
		x := b.acquire(b.other())
		time.AfterFunc(2*time.Second, func() { _ = x.Release(context.Background()) })
		b.ok(b.locks.Do(ctx, "order:42", func(ctx context.Context) error {
			time.Sleep(time.Second)
			return b.locks.Do(ctx, "order:42", func(context.Context) error { return nil }) // no lease, and no span
		}))
		b.spansSay(parent, began,
			acquireSpan+"0s-2s"+templateIs+" distlock.fence=some",
			holdSpan+"2s-3s"+templateIs)
	})
}

func TestASpanHasFailedOnlyIfSomethingWentWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(b *bench, ctx context.Context)
		want []string
	}{
		"held": {
			func(b *bench, ctx context.Context) {
				b.acquire(b.other())
				_, err := b.locks.Acquire(ctx, "order:42", core.WithWait(time.Second))
				b.is(err, core.ErrHeld)
			},
			[]string{acquireSpan + "0s-1s" + templateIs + " error.type=held"},
		},
		"done": {
			func(b *bench, ctx context.Context) {
				b.ok(b.acquire(b.other(), core.WithDedup(time.Hour)).Complete(ctx))
				_, err := b.locks.TryAcquire(ctx, "order:42", core.WithDedup(time.Hour))
				b.is(err, core.ErrDuplicate)
			},
			[]string{acquireSpan + "0s-0s" + templateIs + " error.type=duplicate"},
		},
		"degraded": {
			func(b *bench, ctx context.Context) {
				b.net.All(lab.Refused)
				b.ok(b.mayFallBack().Do(ctx, "order:42", func(context.Context) error { return nil }, core.OnUnavailable(core.LocalOnly)))
			},
			[]string{acquireSpan + "0s-0s" + templateIs + " distlock.degraded=true", holdSpan + "0s-0s" + templateIs},
		},
		"unavailable": {
			func(b *bench, ctx context.Context) {
				b.net.All(lab.RequestLost)
				_, err := b.locks.TryAcquire(ctx, "order:42")
				b.is(err, core.ErrUnavailable)
			},
			[]string{acquireSpan + "0s-2s" + templateIs + " error.type=unavailable failed: unavailable"},
		},
		"lost": {
			func(b *bench, ctx context.Context) {
				x, err := b.locks.TryAcquire(ctx, "order:42", core.WithMaxHold(4*time.Second))
				b.ok(err)
				<-x.Context().Done()
			},
			[]string{
				acquireSpan + "0s-0s" + templateIs + " distlock.fence=some",
				holdSpan + "0s-4s" + templateIs + " error.type=lost distlock.reason=max-hold failed: lost",
			},
		},
		"released, perhaps": {
			func(b *bench, ctx context.Context) {
				b.net.All(lab.RequestLost, lab.OpRelease)
				b.ok(b.locks.Do(ctx, "order:42", func(context.Context) error { return nil }))
			},
			[]string{
				acquireSpan + "0s-0s" + templateIs + " distlock.fence=some",
				holdSpan + "0s-2s" + templateIs + " error.type=unavailable failed: unavailable",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				ctx, parent := b.request()
				began := time.Now()
				test.do(b, ctx)
				b.spansSay(parent, began, test.want...)
			})
		})
	}
}

func TestACallerWithoutATraceGetsNone(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.ok(b.acquire(b.locks).Release(b.Context()))
		b.spansSay(oteltrace.SpanContext{}, time.Now())
	})
}

func TestSpansAreMadeOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		tel := newTelemetry(b.T, telemetry.WithTracerProvider(trace.NewTracerProvider(trace.WithSyncer(b.spans))))
		locks := b.locker(b.store, tel.Option())
		ctx, parent := b.request()
		b.ok(locks.Do(ctx, "order:42", func(context.Context) error { return nil }))
		b.spansSay(parent, time.Now())
	})
}

func TestSpansHaveNamesOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		tel := newTelemetry(b.T, telemetry.WithTracerProvider(trace.NewTracerProvider(trace.WithSyncer(b.spans))),
			telemetry.WithSpans(), telemetry.WithNamesInSpans())
		locks := b.locker(b.store, core.WithTemplate(template), tel.Option())
		ctx, parent := b.request()
		began := time.Now()
		b.ok(locks.Do(ctx, "order:42", func(context.Context) error { return nil }))
		b.spansSay(parent, began,
			acquireSpan+"0s-0s"+templateIs+" distlock.name=order:42 distlock.fence=some", holdSpan+"0s-0s"+templateIs+" distlock.name=order:42")
	})
}

func TestTheSamplerDecidesAndNoTemplateIsNoPartOfAName(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		sampled := tracetest.NewInMemoryExporter()
		provider := trace.NewTracerProvider(trace.WithSyncer(sampled), trace.WithSampler(trace.ParentBased(trace.NeverSample())))
		tel := newTelemetry(b.T, telemetry.WithTracerProvider(provider), telemetry.WithSpans())
		locks := b.locker(b.store, tel.Option())
		for _, flags := range []oteltrace.TraceFlags{0, oteltrace.FlagsSampled} {
			parent := oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: [16]byte{1}, SpanID: [8]byte{1}, TraceFlags: flags})
			ctx := oteltrace.ContextWithRemoteSpanContext(b.Context(), parent)
			b.ok(locks.Do(ctx, "order:42", func(context.Context) error { return nil }))
		}
		synctest.Wait()
		spans := sampled.GetSpans()
		if len(spans) != 2 || spans[0].Name != "acquire" || spans[1].Name != "hold" {
			b.Errorf("%d spans: %v", len(spans), spans)
		}
	})
}
