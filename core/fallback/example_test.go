package fallback_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// A preview that is made twice does no harm: it goes on without the lock service.
func Example() {
	ctx := context.Background()
	store := memlock.New() // redislock.New(rdb), in a program
	locks, err := core.New(fallback.New(store), core.WithLogger(nil))
	if err != nil {
		panic(err)
	}
	store.SetDown(true)
	err = locks.Do(ctx, "preview:42", func(ctx context.Context) error {
		lease, _ := core.FromContext(ctx)
		fmt.Println("degraded:", lease.Degraded())
		return nil
	}, core.OnUnavailable(core.LocalOnly))
	fmt.Println(err)
	if err := locks.Close(ctx); err != nil {
		panic(err)
	}
	// Output:
	// degraded: true
	// <nil>
}
