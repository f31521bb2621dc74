package telemetrytest_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

func Example() {
	reader := metric.NewManualReader() // a program has its exporter here
	provider := metric.NewMeterProvider(metric.WithReader(reader))

	tel, err := telemetry.New(telemetry.WithMeterProvider(provider), telemetry.WithTemplates("order:{id}"))
	if err != nil {
		log.Fatal(err)
	}
	locks, err := core.New(memlock.New(), tel.Option())
	if err != nil {
		log.Fatal(err)
	}
	orders, err := locks.With(core.WithTemplate("order:{id}"), core.WithLabel("web-1"), core.WithoutReentry()) // a door sets the template itself
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	err = orders.Do(ctx, "order:42", func(ctx context.Context) error {
		_, err := orders.TryAcquire(ctx, "order:42") // somebody else, say
		return err
	})
	fmt.Println(err)
	if err := locks.Close(ctx); err != nil { // then everything has been told
		log.Fatal(err)
	}

	var exported metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &exported); err != nil {
		log.Fatal(err)
	}
	for _, m := range exported.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				result, _ := p.Attributes.Value("error.type")
				fmt.Println(m.Name, result.AsString(), p.Count)
			}
		case metricdata.Sum[int64]:
			fmt.Println(m.Name, len(data.DataPoints), "series")
		}
	}
	// Unordered output:
	// holdfast: "order:42" is held by "web-1"
	// distlock.acquire.duration  1
	// distlock.acquire.duration held 1
	// distlock.waits 1 series
	// distlock.held 1 series
	// distlock.waiting 1 series
	// distlock.hold.duration  1
	// distlock.renewals 3 series
	// distlock.lost 4 series
	// distlock.unconfirmed 1 series
	// distlock.degraded 1 series
	// distlock.events.dropped 1 series
}
