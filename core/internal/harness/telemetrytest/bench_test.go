package telemetrytest_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

func newMetrics(tb testing.TB) *telemetry.Telemetry {
	tb.Helper()
	return newTelemetry(tb, telemetry.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))))
}

// BenchmarkDo is what a lease costs its holder, with nobody to observe it and with telemetry.
func BenchmarkDo(b *testing.B) {
	for name, opts := range map[string][]core.NewOption{
		"unobserved": nil,
		"metrics":    {newMetrics(b).Option()},
	} {
		b.Run(name, func(b *testing.B) {
			do := doer(b, opts...)
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
}

func doer(tb testing.TB, opts ...core.NewOption) func() {
	tb.Helper()
	locks, err := core.New(memlock.New(), append(opts, core.WithTemplate(template))...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = locks.Close(context.Background()) })
	ctx := tb.Context()
	work := func(context.Context) error { return nil }
	return func() {
		if err := locks.Do(ctx, "order:42", work); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkObserver is what one lease costs the goroutine that events are told on. If that
// falls behind, events are dropped.
func BenchmarkObserver(b *testing.B) {
	traced := newTelemetry(b, telemetry.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))),
		telemetry.WithTracerProvider(trace.NewTracerProvider()), telemetry.WithSpans())
	ctx, span := trace.NewTracerProvider().Tracer("bench").Start(b.Context(), "request")
	defer span.End()
	for name, tel := range map[string]*telemetry.Telemetry{"metrics": newMetrics(b), "spans too": traced} {
		begins := core.Event{Kind: core.EventAcquired, Template: template, Name: "order:42", Context: ctx, At: time.Now(), Took: time.Millisecond}
		ends := begins
		ends.Kind, ends.Held = core.EventReleased, time.Second
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tel.Observe(begins)
				tel.Observe(ends)
			}
		})
	}
}

// An observer that wants nothing shows what observing alone allocates, and a Locker without one must not pay
// that.
//
//nolint:paralleltest // it counts the allocations of the process
func TestALockerThatNobodyObservesAllocatesNothingForIt(t *testing.T) {
	unobserved := testing.AllocsPerRun(1000, doer(t))
	observed := testing.AllocsPerRun(1000, doer(t, core.WithObserver(func(core.Event) {})))
	t.Logf("allocations of a Do: %.0f unobserved, %.0f observed", unobserved, observed)
	if unobserved >= observed {
		t.Errorf("a Do allocates %.0f times unobserved, and %.0f times observed", unobserved, observed)
	}
}
