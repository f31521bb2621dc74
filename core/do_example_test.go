package core_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/core/memlock"
)

type refundRequest struct {
	OrderID int64
	Cents   int
}

// Wrap is for what is behind no door: it wraps a function as a middleware wraps a handler.
func ExampleWrap() {
	ctx := context.Background()
	locks, err := core.New(memlock.New()) // redislock.New(rdb), where there is more than one process
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	order := key.MustParse("order:{id}") // the same names as at every door
	refund := core.Wrap(locks,
		func(_ context.Context, r refundRequest) (string, error) {
			return order.Name(strconv.FormatInt(r.OrderID, 10))
		},
		func(ctx context.Context, r refundRequest) (string, error) {
			lease, _ := core.FromContext(ctx)
			return fmt.Sprintf("%d cents, under %s", r.Cents, lease.Name()), nil
		},
		core.WithWait(time.Second))

	fmt.Println(refund(ctx, refundRequest{OrderID: 42, Cents: 995}))
	// Output:
	// 995 cents, under order:42 <nil>
}

func ExampleDoValue() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	next := 41
	number := func(context.Context) (int, error) {
		next++
		return next, nil
	}
	fmt.Println(core.DoValue(ctx, locks, "invoice:numbers", number))

	busy, err := locks.Acquire(ctx, "invoice:numbers") // by somebody else
	if err != nil {
		panic(err)
	}
	n, err := core.DoValue(ctx, locks, "invoice:numbers", number, core.WithWait(0))
	fmt.Println(n, errors.Is(err, core.ErrHeld))
	fmt.Println(busy.Release(ctx))
	// Output:
	// 42 <nil>
	// 0 true
	// <nil>
}

func ExampleConfirm() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	charge := func(ctx context.Context, cents int) error {
		// What cannot be taken back comes next, at a service that knows no fences.
		if err := core.Confirm(ctx); err != nil {
			return err
		}
		fmt.Println("charged", cents, "cents")
		return nil
	}
	err = locks.Do(ctx, "order:42", func(ctx context.Context) error {
		return charge(ctx, 995)
	})
	fmt.Println(err)

	err = charge(ctx, 995) // somebody has forgotten the lock
	fmt.Println(errors.Is(err, core.ErrInvalid))
	// Output:
	// charged 995 cents
	// <nil>
	// true
}
