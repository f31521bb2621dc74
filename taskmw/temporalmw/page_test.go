package temporalmw_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw/temporalmw"
)

// What follows is the code of docs/guides/jobs.md; examples/readme_test.go compares them.

func newWorker(c client.Client, locks *core.Locker) worker.Worker {
	w := worker.New(c, "orders", worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{temporalmw.Interceptor(locks,
			// One activity at a time for each order. Others fail, and are retried in 5 s.
			temporalmw.WithActivity("Refund", "order:{order_id}"),

			// The same lock; it waits for up to 10 s before it fails.
			temporalmw.WithActivity("Ship", "order:{order_id}", core.WithWait(10*time.Second)),
		)},
	})
	return w
}

type shipment struct {
	OrderID int `json:"order_id"`
}

// Ship is an activity.
func Ship(ctx context.Context, s shipment) error {
	lease, _ := core.FromContext(ctx) // ctx ends when the lock is lost, so do the work with it
	return shipOrder(ctx, s.OrderID, lease.Fence())
}

func shipOrder(ctx context.Context, _ int, _ uint64) error { return ctx.Err() }

func Example() {
	c, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1", Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	newWorker(c, locks).RegisterActivity(Ship)
	fmt.Println("ready to run")
	// Output: ready to run
}
