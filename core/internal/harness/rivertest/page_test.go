package rivertest

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw/rivermw"
)

// What follows is the code of docs/guides/jobs.md; examples/readme_test.go compares them.

func newClient(driver riverdriver.Driver[*sql.Tx], workers *river.Workers, locks *core.Locker) (*river.Client[*sql.Tx], error) {
	client, err := river.NewClient(driver, &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers: workers,
		Middleware: []rivertype.Middleware{rivermw.Middleware(locks,
			// One job at a time for each order. A job whose order is being worked on is snoozed.
			rivermw.WithKind("refund_order", "order:{order_id}"),

			// The same lock. An order ships once: later jobs are completed without a run, for a day.
			rivermw.WithKind("ship_order", "order:{order_id}", core.WithDedup(24*time.Hour)),
		)},
	})
	return client, err
}

type shipWorker struct {
	river.WorkerDefaults[ship]
}

func (w *shipWorker) Work(ctx context.Context, job *river.Job[ship]) error {
	lease, _ := core.FromContext(ctx) // ctx ends when the lock is lost, so do the work with it
	return shipOrder(ctx, job.Args.OrderID, lease.Fence())
}

func shipOrder(ctx context.Context, _ int, _ uint64) error { return ctx.Err() }

func TestTheCodeOfThePageWorks(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	workers := river.NewWorkers()
	river.AddWorker(workers, &shipWorker{})
	if _, err := newClient(nil, workers, locks); err == nil {
		t.Error("River takes no driver")
	}
}
