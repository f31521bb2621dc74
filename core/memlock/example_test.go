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

// What the work does when its lease is lost, and what the resource does with what it writes
// nevertheless.
func ExampleStore_Steal() {
	ctx := context.Background()
	store := memlock.New()
	locks, err := core.New(store)
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	var seen uint64 // by the resource
	write := func(fence uint64) error {
		if fence < seen {
			return errors.New("too late")
		}
		seen = fence
		return nil
	}
	err = locks.Do(ctx, "order:42", func(ctx context.Context) error {
		fence, _ := core.FenceFor(ctx, "order:42")
		thief := store.Steal("order:42")
		fmt.Println("the thief writes:", write(thief))
		fmt.Println("the work writes:", write(fence))
		return core.Confirm(ctx)
	})
	fmt.Println(err)
	// Output:
	// the thief writes: <nil>
	// the work writes: too late
	// holdfast: lease of "order:42" lost: taken
}
