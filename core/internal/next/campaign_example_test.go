//go:build next

package core_test

import (
	"context"
	"fmt"

	core "github.com/holdfast-go/holdfast/core/internal/next"
)

func ExampleLocker_Campaign() {
	ctx, stop := context.WithCancel(context.Background()) // in production: signal.NotifyContext
	locks := exampleLocker()
	defer locks.Close(context.Background())

	err := locks.Campaign(ctx, "scheduler", func(ctx context.Context) error {
		fmt.Println("this process is the scheduler")
		stop() // SIGTERM
		<-ctx.Done()
		return nil // resign: the next in line takes over at once
	}, core.WithLabel("host-1"))
	fmt.Println(err)
	// Output:
	// this process is the scheduler
	// <nil>
}
