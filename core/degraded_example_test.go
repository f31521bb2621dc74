package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/memlock"
)

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
	previews, err := locks.With(core.WithTemplate("preview:{id}"), core.OnUnavailable(core.LocalOnly)) // or as an option of a door's rule
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
