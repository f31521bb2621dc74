package taskmw_test

import (
	"context"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

// A mux calls its middlewares for every task that a server gets from its queues. Here the
// example stands in for the server, with the context that its configuration makes.
func Example() {
	locks, err := core.New(memlock.New()) // in production: redislock.New(rdb)
	if err != nil {
		panic(err)
	}
	defer func() { _ = locks.Close(context.Background()) }()

	var cfg asynq.Config
	taskmw.Configure(&cfg)
	mux := asynq.NewServeMux()
	mux.Use(taskmw.Middleware(locks,
		taskmw.WithType("order:ship", "order:{order_id}", core.WithDedup(24*time.Hour)),
		taskmw.WithType("report:*", "{asynq:type}:{header:tenant|text}")))
	mux.HandleFunc("order:ship", func(ctx context.Context, _ *asynq.Task) error {
		lease, _ := core.FromContext(ctx)
		fmt.Println("shipping under", lease.Name())
		return nil
	})

	task := asynq.NewTask("order:ship", []byte(`{"order_id":42}`))
	for range 2 { // the second time it is done already
		fmt.Println(mux.ProcessTask(cfg.BaseContext(), task))
	}
	// Output:
	// shipping under order:42
	// <nil>
	// <nil>
}
