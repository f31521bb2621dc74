package operate_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/operate"
)

func ExampleOperator_Leases() {
	ctx := context.Background()
	locks, err := core.New(memlock.New(), core.WithLabel("host-1"))
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)
	lease, err := locks.Acquire(ctx, "order:42")
	if err != nil {
		panic(err)
	}
	defer lease.Release(ctx)

	for info, err := range operate.New(locks).Leases(ctx, "order:") {
		if err != nil {
			panic(err)
		}
		fmt.Println(info.Name, "is held by", info.Label, "and", len(info.Line), "wait")
	}
	// Output: order:42 is held by host-1 and 0 wait
}
