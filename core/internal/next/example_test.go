//go:build next

package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	memlock "github.com/holdfast-go/holdfast/core/internal/contract/memory"
	core "github.com/holdfast-go/holdfast/core/internal/next"
)

func exampleLocker(opts ...core.NewOption) *core.Locker {
	locks, err := core.New(memlock.New(), opts...) // in production: redislock.New(rdb)
	if err != nil {
		panic(err)
	}
	return locks
}

func ExampleLocker_Do() {
	ctx := context.Background()
	locks := exampleLocker()
	defer locks.Close(ctx)

	err := locks.Do(ctx, "report:daily", func(ctx context.Context) error {
		lease, _ := core.FromContext(ctx)
		fmt.Println("working under", lease.Name())
		return ctx.Err() // ended, if the lease was lost meanwhile
	})
	fmt.Println(err)
	// Output:
	// working under report:daily
	// <nil>
}

func ExampleLocker_TryAcquire() {
	ctx := context.Background()
	locks := exampleLocker(core.WithLabel("host-1"))
	defer locks.Close(ctx)

	lease, err := locks.TryAcquire(ctx, "order:42")
	if err != nil {
		panic(err)
	}
	_, err = locks.TryAcquire(ctx, "order:42")
	if held, ok := errors.AsType[*core.HeldError](err); ok {
		fmt.Println("held by", held.Label)
	}
	fmt.Println(lease.Release(ctx))
	again, err := locks.TryAcquire(ctx, "order:42")
	fmt.Println(err)
	fmt.Println(again.Release(ctx))
	// Output:
	// held by host-1
	// <nil>
	// <nil>
	// <nil>
}

func ExampleLocker_AcquireAll() {
	ctx := context.Background()
	locks := exampleLocker()
	defer locks.Close(ctx)

	transfer, err := locks.AcquireAll(ctx, []string{"account:7", "account:3"})
	if err != nil {
		panic(err)
	}
	fmt.Println(transfer.Names())
	fmt.Println(transfer.Finish(ctx, nil))
	// Output:
	// [account:3 account:7]
	// <nil>
}

func ExampleWithShared() {
	ctx := context.Background()
	locks := exampleLocker(core.WithWait(0))
	defer locks.Close(ctx)

	err := locks.Do(ctx, "prices", func(context.Context) error {
		_, err := locks.TryAcquire(ctx, "prices")
		fmt.Println("a writer is refused:", errors.Is(err, core.ErrHeld))
		return locks.Do(ctx, "prices", func(context.Context) error {
			fmt.Println("two readers")
			return nil
		}, core.WithShared())
	}, core.WithShared())
	fmt.Println(err)
	// Output:
	// a writer is refused: true
	// two readers
	// <nil>
}

func ExampleWithLimit() {
	ctx := context.Background()
	locks := exampleLocker(core.WithLimit(2), core.WithWait(0))
	defer locks.Close(ctx)

	for range 3 {
		permit, err := locks.Acquire(ctx, "printer")
		if errors.Is(err, core.ErrHeld) {
			fmt.Println("both are in use")
			continue
		}
		defer permit.Release(ctx)
		fmt.Println("printing")
	}
	// Output:
	// printing
	// printing
	// both are in use
}

func ExampleWithMinHold() {
	ctx := context.Background()
	locks := exampleLocker(core.WithWait(0), core.WithMinHold(50*time.Second))
	defer locks.Close(ctx)

	for range 3 { // nodes, each of which has the same job for this minute
		err := locks.Do(ctx, "report:daily", func(context.Context) error {
			fmt.Println("reporting")
			return nil
		})
		fmt.Println(errors.Is(err, core.ErrHeld))
	}
	// Output:
	// reporting
	// false
	// true
	// true
}

func ExampleWithDedup() {
	ctx := context.Background()
	locks := exampleLocker(core.WithDedup(24 * time.Hour))
	defer locks.Close(ctx)

	for _, outcome := range []error{errors.New("no stock"), nil, nil} {
		err := locks.Do(ctx, "order:42", func(context.Context) error {
			fmt.Println("shipping")
			return outcome
		})
		fmt.Println(err, errors.Is(err, core.ErrDuplicate))
	}
	// Output:
	// shipping
	// no stock false
	// shipping
	// <nil> false
	// holdfast: "order:42" is already done true
}

func ExampleWithoutReentry() {
	ctx := context.Background()
	locks := exampleLocker()
	defer locks.Close(ctx)

	err := locks.Do(ctx, "order:42", func(ctx context.Context) error {
		return locks.Do(ctx, "order:42", func(context.Context) error { // joins the lease of ctx
			fmt.Println("inside")
			return nil
		})
	})
	fmt.Println(err)

	err = locks.Do(ctx, "order:42", func(ctx context.Context) error {
		_, err := locks.TryAcquire(ctx, "order:42", core.WithoutReentry())
		return err
	})
	fmt.Println(errors.Is(err, core.ErrHeld))
	// Output:
	// inside
	// <nil>
	// true
}

// The resource remembers the largest fence, and refuses smaller ones.
func ExampleLease_Fence() {
	ctx := context.Background()
	locks := exampleLocker()
	defer locks.Close(ctx)

	var largest uint64
	write := func(fence uint64, what string) {
		if fence < largest {
			fmt.Println("refused:", what)
			return
		}
		largest = fence
		fmt.Println("written:", what)
	}

	paused, err := locks.Acquire(ctx, "order:42")
	if err != nil {
		panic(err)
	}
	_ = paused.Release(ctx) // stands for a lease that ran out while its holder was paused
	next, err := locks.Acquire(ctx, "order:42")
	if err != nil {
		panic(err)
	}
	write(next.Fence(), "by the new holder")
	write(paused.Fence(), "by the one that was paused")
	_ = next.Release(ctx)
	// Output:
	// written: by the new holder
	// refused: by the one that was paused
}
