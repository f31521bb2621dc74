package telemetrytest_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

// BenchmarkObserver is what one lease costs: not its holder, but the goroutine that events are
// told on. If that falls behind, events are dropped.
func BenchmarkObserver(b *testing.B) {
	tel, err := telemetry.New(telemetry.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))))
	if err != nil {
		b.Fatal(err)
	}
	o := tel.Observer()
	s := core.Subject{Template: "order:{id}", Name: "order:42", Context: b.Context(), At: time.Now()}
	b.ReportAllocs()
	for b.Loop() {
		o.Acquired(core.AcquiredEvent{Subject: s, Took: time.Millisecond})
		o.Released(core.ReleasedEvent{Subject: s, Held: time.Second})
	}
}
