package telemetrytest_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

// stuck is an exporter that takes nothing until it is let go.
type stuck struct{ let chan struct{} }

func (s stuck) ExportSpans(context.Context, []trace.ReadOnlySpan) error {
	<-s.let
	return nil
}

func (s stuck) Shutdown(context.Context) error { return nil }

// With a span processor that exports in place, an exporter blocks the goroutine that events
// are told on. That is the worst that one can do.
func TestAStuckExporterDelaysNothingAndTheCountOfLeasesStaysRight(t *testing.T) {
	t.Parallel()
	const calls = 2000
	virtual(t, func(b *bench) {
		exporter := stuck{make(chan struct{})}
		locks := b.locker(b.net, core.WithTemplate(template), b.telemetry(telemetry.WithSpans(),
			telemetry.WithTracerProvider(trace.NewTracerProvider(trace.WithSyncer(exporter)))).Option())
		ctx, _ := b.request()
		began := time.Now()
		for range calls {
			b.ok(locks.Do(ctx, "order:43", nothing))
		}
		var held []*core.Lease
		for _, name := range []string{"order:44", "order:45", "order:46"} { // their beginnings are dropped
			x, err := locks.TryAcquire(ctx, name)
			b.ok(err)
			held = append(held, x)
		}
		if took := time.Since(began); took != 0 {
			b.Errorf("calls were delayed by %s", took)
		}
		time.Sleep(10 * ttl)
		close(exporter.let)
		if n := b.count("distlock.events.dropped"); n < calls {
			b.Errorf("%d events were dropped, of more than %d", n, 2*calls)
		}
		if n := b.count("distlock.held"); n != 3 {
			b.Errorf("three leases are held, and %d are counted", n)
		}
		for _, x := range held { // they are renewed
			b.ok(x.Release(ctx))
		}
		if n := b.count("distlock.held"); n != 0 {
			b.Errorf("no lease is held, and %d are counted", n)
		}
	})
}

// count is the sum of a counter's series.
func (b *bench) count(name string) (n int64) {
	b.Helper()
	for _, scope := range b.collect().ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
					n += p.Value
				}
			}
		}
	}
	return n
}
