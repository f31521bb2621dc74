//go:build next

package core_test

import (
	"context"
	"fmt"
	"time"

	core "github.com/holdfast-go/holdfast/core/internal/next"
)

func ExampleLease_Detach() {
	ctx := context.Background()
	locks := exampleLocker()
	defer locks.Close(ctx)

	request, err := locks.Acquire(ctx, "order:42", core.WithLabel("web-1"))
	if err != nil {
		panic(err)
	}
	handoff, err := request.Detach(ctx, 10*time.Minute)
	if err != nil {
		panic(err)
	}
	sent := handoff.Encode() // through a queue, to another process
	_, err = locks.TryAcquire(ctx, "order:42")
	fmt.Println("others:", err)

	handoff, err = core.ParseHandoff(sent)
	if err != nil {
		panic(err)
	}
	task, err := locks.Attach(ctx, handoff)
	if err != nil {
		panic(err)
	}
	defer func() { _ = task.Release(ctx) }()
	fmt.Println("the task:", task.Name(), task.Fence() > request.Fence())
	// Output:
	// others: holdfast: "order:42" is held by "web-1"
	// the task: order:42 true
}
