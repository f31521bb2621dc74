package fence_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// The owner of a file lets in whoever has the newest fence. Here a holder comes back after
// its successor has written.
func ExampleMemory() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	var report string
	var guard fence.Memory
	write := func(f uint64, text string) error {
		return guard.Do("report:daily", f, func() error {
			report = text
			return nil
		})
	}

	var paused uint64 // the fence of a holder that does not know that its time is over
	err = locks.Do(ctx, "report:daily", func(ctx context.Context) error {
		paused, _ = core.FenceFor(ctx, "report:daily")
		return nil
	})
	fmt.Println(err)
	err = locks.Do(ctx, "report:daily", func(ctx context.Context) error {
		f, _ := core.FenceFor(ctx, "report:daily")
		return write(f, "new")
	})
	fmt.Println(err)

	fmt.Println("late write refused:", errors.Is(write(paused, "old"), fence.ErrStale))
	unlocked, _ := core.FenceFor(ctx, "report:daily")
	fmt.Println("no lock, no write: ", errors.Is(write(unlocked, "none"), fence.ErrInvalid))
	fmt.Println("the report is", report)
	// Output:
	// <nil>
	// <nil>
	// late write refused: true
	// no lock, no write:  true
	// the report is new
}

func ExampleSQL_Schema() {
	for _, opts := range [][]fence.SQLOption{nil, {fence.WithTable("app.Fences")}} {
		guard, err := fence.NewSQL(fence.SQLite, opts...)
		if err != nil {
			panic(err)
		}
		fmt.Println(guard.Schema())
	}
	// Output:
	// CREATE TABLE IF NOT EXISTS "holdfast_fences" (name TEXT NOT NULL PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID
	// CREATE TABLE IF NOT EXISTS "app"."Fences" (name TEXT NOT NULL PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID
}

func ExampleParse() {
	f, err := fence.Parse("1795000000000001") // from a header of one of our own services
	fmt.Println(f, err)
	_, err = fence.Parse("-1")
	fmt.Println(err)
	// Output:
	// 1795000000000001 <nil>
	// fence: invalid fence "-1": not a number in decimal digits
}
