package memlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// Two Lockers on one Store are two processes, in a test.
func Example() {
	ctx := context.Background()
	store := memlock.New()
	a, err := core.New(store)
	if err != nil {
		panic(err)
	}
	defer a.Close(ctx)
	b, err := core.New(store)
	if err != nil {
		panic(err)
	}
	defer b.Close(ctx)

	err = a.Do(ctx, "order:42", func(context.Context) error {
		_, err := b.TryAcquire(ctx, "order:42")
		fmt.Println("b is refused:", errors.Is(err, core.ErrHeld))
		return nil
	})
	fmt.Println(err)
	// Output:
	// b is refused: true
	// <nil>
}
