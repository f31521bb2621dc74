package core_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/core/memlock"
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

// A preview that is made twice does no harm, one that is not made does: it goes on without the
// lock service. A payment does not.
func ExampleOnUnavailable() {
	ctx := context.Background()
	store := memlock.New() // redislock.New(rdb), in a program
	locks, err := core.New(fallback.New(store), core.WithObserver(func(e core.Event) {
		if e.Kind == core.EventDegraded {
			fmt.Println("degraded:", e.Template)
		}
	}))
	if err != nil {
		panic(err)
	}
	previews, err := locks.With(core.WithTemplate("preview:{id}"), core.OnUnavailable(core.LocalOnly)) // or as an option of a middleware's rule
	if err != nil {
		panic(err)
	}
	store.SetDown(true)

	fmt.Println(previews.Do(ctx, "preview:42", func(ctx context.Context) error {
		lease, _ := core.FromContext(ctx)
		fmt.Println("degraded:", lease.Degraded(), "fence:", lease.Fence())
		_, err := previews.TryAcquire(context.Background(), "preview:42") // somebody else of this process
		fmt.Println(errors.Is(err, core.ErrHeld))
		return nil
	}))
	_, err = locks.TryAcquire(ctx, "payment:42")
	fmt.Println("refused:", errors.Is(err, core.ErrUnavailable))

	_, err = locks.With(core.OnUnavailable(core.LocalOnly), core.WithDedup(24*time.Hour))
	fmt.Println(err)
	if err := locks.Close(ctx); err != nil { // then everything has been told
		panic(err)
	}

	// Unordered output:
	// degraded: true fence: 0
	// true
	// <nil>
	// refused: true
	// holdfast: invalid OnUnavailable(LocalOnly): not with WithDedup, which only the lock service can keep
	// degraded: preview:{id}
}

type refundRequest struct {
	OrderID int64
	Cents   int
}

// Wrap is for what has no middleware: it wraps a function as a middleware wraps a handler.
func ExampleWrap() {
	ctx := context.Background()
	locks := exampleLocker()
	defer locks.Close(ctx)

	order := key.MustParse("order:{id}") // the same names as in every middleware
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
	locks := exampleLocker()
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
	locks := exampleLocker()
	defer locks.Close(ctx)

	charge := func(ctx context.Context, cents int) error {
		// What cannot be taken back comes next, at a service that knows no fences.
		if err := core.Confirm(ctx); err != nil {
			return err
		}
		fmt.Println("charged", cents, "cents")
		return nil
	}
	err := locks.Do(ctx, "order:42", func(ctx context.Context) error {
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
