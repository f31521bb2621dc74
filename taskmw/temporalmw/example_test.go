package temporalmw_test

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw/temporalmw"
)

func ExampleInterceptor() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	options := worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		temporalmw.Interceptor(locks, temporalmw.WithActivity("Ship", "order:{order_id}")),
	}}

	var suite testsuite.WorkflowTestSuite // in place of worker.New(client, "orders", options)
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(options)
	env.RegisterActivityWithOptions(func(ctx context.Context, _ struct {
		ID int `json:"order_id"`
	}) error {
		lease, _ := core.FromContext(ctx)
		fmt.Println("shipped under", lease.Name())
		return nil
	}, activity.RegisterOptions{Name: "Ship"})
	_, err = env.ExecuteActivity("Ship", map[string]int{"order_id": 42})
	fmt.Println(err)
	// Output:
	// shipped under order:42
	// <nil>
}
