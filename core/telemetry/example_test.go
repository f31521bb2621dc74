package telemetry_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/telemetry"
)

func Example() {
	tel, err := telemetry.New(
		telemetry.WithMeterProvider(noop.NewMeterProvider()), // that of your program; otel's global one is the default
		telemetry.WithTemplates("order:{id|int}"),            // the keys of your routes, methods and tasks
	)
	if err != nil {
		panic(err)
	}
	locks, err := core.New(memlock.New(), tel.Option())
	if err != nil {
		panic(err)
	}
	err = locks.Do(context.Background(), "order:42", func(context.Context) error { return nil })
	fmt.Println(err)
	// Output: <nil>
}
