package rivermw_test

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw/rivermw"
)

func ExampleMiddleware() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	middleware := []rivertype.Middleware{ // for river.Config
		rivermw.Middleware(locks, rivermw.WithKind("ship_order", "order:{order_id}", core.WithDedup(24*time.Hour))),
	}

	// What River does with it, twice:
	job := &rivertype.JobRow{ID: 1, Kind: "ship_order", EncodedArgs: []byte(`{"order_id": 42}`)}
	for range 2 {
		err = middleware[0].(rivertype.WorkerMiddleware).Work(ctx, job, func(ctx context.Context) error {
			lease, _ := core.FromContext(ctx)
			fmt.Println("shipped under", lease.Name())
			return nil
		})
		fmt.Println(err)
	}
	// Output:
	// shipped under order:42
	// <nil>
	// <nil>
}
