package telemetrytest_test

import (
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

func TestCountersOfNamedTemplatesBeginAtZeroAndCountUpFromThere(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.tel = b.telemetry(telemetry.WithTemplates(template), telemetry.WithTemplates(""))
		want := []string{nothingDropped}
		for _, line := range []string{
			"held", "waiting", "waits", "unconfirmed", "degraded", "renewals", "renewals{error.type=lost}", "renewals{error.type=unavailable}",
			"lost{distlock.reason=expired}", "lost{distlock.reason=taken}",
			"lost{distlock.reason=unreachable}", "lost{distlock.reason=max-hold}",
		} {
			want = append(want, line+" 0", withoutTemplate(line)+" 0")
		}
		b.exports(want...)
		locks := b.locker(b.store, core.WithTemplate(template), b.tel.Option())
		<-b.acquire(locks, core.WithoutRenewal()).Context().Done()
		if added := len(b.export()) - len(want); added != 2 {
			b.Errorf("a loss added %d series to the primed ones, not those of the two histograms", added)
		}
	})
}

// withoutTemplate is the series with the same other attributes.
func withoutTemplate(line string) string {
	if last := len(line) - 1; line[last] == '}' {
		return line[:last] + ",no template}"
	}
	return line + "{no template}"
}

//nolint:paralleltest // it sets what all tests of a process share
func TestTheDefaultIsTheGlobalProvidersAtTheTimeOfNew(t *testing.T) {
	meters, tracers := otel.GetMeterProvider(), otel.GetTracerProvider()
	reader, spans := metric.NewManualReader(), tracetest.NewInMemoryExporter()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	tel, err := telemetry.New(telemetry.WithMeterProvider(nil), telemetry.WithTracerProvider(nil), telemetry.WithSpans())
	tracer := otel.Tracer("test")
	otel.SetMeterProvider(meters)
	otel.SetTracerProvider(tracers)
	if _, err := telemetry.New(telemetry.WithSpans(), nil); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a nil option: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, reader: reader}
		b.ok(err)
		ctx, parent := tracer.Start(b.Context(), "request")
		defer parent.End()
		locks := b.locker(memlock.New(), core.WithTemplate(template), tel.Option())
		b.ok(locks.Do(ctx, "order:42", nothing))
		b.exports("acquire.duration 1 0s", "held 0", "hold.duration 1 0s", nothingDropped)
		if n := len(spans.GetSpans()); n != 2 {
			b.Errorf("%d spans", n)
		}
	})
}
