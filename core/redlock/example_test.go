package redlock_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// A lock on three servers, one of which is down. In production each node is a redislock.New on a server of its own.
func Example() {
	ctx := context.Background()
	down := memlock.New()
	down.SetDown(true)
	locks, err := core.New(redlock.New([]driver.Driver{memlock.New(), memlock.New(), down}))
	if err != nil {
		panic(err)
	}
	err = locks.Do(ctx, "order:42", func(context.Context) error {
		fmt.Println("two of three are a quorum")
		return nil
	})
	fmt.Println(err)
	// Output:
	// two of three are a quorum
	// <nil>
}
