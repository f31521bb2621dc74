package telemetrytest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

func TestCountersOfNamedTemplatesBeginAtZero(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	newTelemetry(t, telemetry.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))),
		telemetry.WithTemplates(template), telemetry.WithTemplates(""))
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, reader: reader}
		want := []string{nothingDropped}
		for _, line := range []string{
			"held", "waiting", "waits", "unconfirmed", "degraded", "renewals", "renewals{error.type=lost}", "renewals{error.type=unavailable}",
			"lost{distlock.reason=expired}", "lost{distlock.reason=taken}",
			"lost{distlock.reason=unreachable}", "lost{distlock.reason=max-hold}",
		} {
			want = append(want, line+" 0", withoutTemplate(line)+" 0")
		}
		b.exports(want...)
	})
}

// withoutTemplate is the series with the same other attributes.
func withoutTemplate(line string) string {
	if last := len(line) - 1; line[last] == '}' {
		return line[:last] + ",no template}"
	}
	return line + "{no template}"
}

func TestALossCountsUpFromItsZero(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.tel = newTelemetry(t, telemetry.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(b.second()))),
			telemetry.WithTemplates(template))
		locks := b.locker(b.store, core.WithTemplate(template), b.tel.Option())
		before := len(b.export())
		<-b.acquire(locks, core.WithoutRenewal()).Context().Done()
		if added := len(b.export()) - before; added != 2 {
			b.Errorf("a loss added %d series to the primed ones, not those of the two histograms", added)
		}
	})
}

// second gives the bench another reader.
func (b *bench) second() metric.Reader {
	b.reader = metric.NewManualReader()
	return b.reader
}

func TestABadOptionIsInvalid(t *testing.T) {
	t.Parallel()
	if _, err := telemetry.New(telemetry.WithSpans(), nil); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a nil option: %v", err)
	}
}

//nolint:paralleltest // it sets what all tests of a process share
func TestTheDefaultIsTheGlobalProvidersAtTheTimeOfNew(t *testing.T) {
	meters, tracers := otel.GetMeterProvider(), otel.GetTracerProvider()
	reader, spans := metric.NewManualReader(), tracetest.NewInMemoryExporter()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	tel := newTelemetry(t, telemetry.WithMeterProvider(nil), telemetry.WithTracerProvider(nil), telemetry.WithSpans())
	tracer := otel.Tracer("test")
	otel.SetMeterProvider(meters)
	otel.SetTracerProvider(tracers)
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, reader: reader}
		ctx, parent := tracer.Start(b.Context(), "request")
		defer parent.End()
		locks := b.locker(memlock.New(), core.WithTemplate(template), tel.Option())
		b.ok(locks.Do(ctx, "order:42", func(context.Context) error { return nil }))
		b.exports("acquire.duration 1 0s", "held 0", "hold.duration 1 0s", nothingDropped)
		if n := len(spans.GetSpans()); n != 2 {
			b.Errorf("%d spans", n)
		}
	})
}
