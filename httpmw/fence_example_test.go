package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
)

// A service that keeps orders, and one that works on them under a lock.
func ExampleSetFence() {
	var guard fence.Memory // fence.SQL, where the orders are in a database
	orders := func(w http.ResponseWriter, r *http.Request) {
		f, err := httpmw.Fence(r.Header)
		if err == nil {
			err = guard.Do(r.URL.Path, f, func() error { return nil }) // write
		}
		switch {
		case errors.Is(err, fence.ErrStale):
			http.Error(w, "", http.StatusConflict)
		case err != nil:
			http.Error(w, "", http.StatusBadRequest)
		}
	}

	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)
	put := func(ctx context.Context) int {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPut, "/orders/42", http.NoBody)
		if err := httpmw.SetFence(ctx, "order:42", r.Header); err != nil {
			fmt.Println(err)
		}
		orders(w, r)
		return w.Code
	}

	paused, err := locks.Acquire(ctx, "order:42")
	if err != nil {
		panic(err)
	}
	if err := paused.Release(ctx); err != nil { // as if its lease had run out
		panic(err)
	}
	err = locks.Do(ctx, "order:42", func(ctx context.Context) error {
		fmt.Println("the holder:", put(ctx))
		return nil
	})
	fmt.Println("the late one:", put(paused.Context()))
	fmt.Println("no lock:", put(ctx), err)
	// Output:
	// the holder: 200
	// the late one: 409
	// httpmw: SetFence: fence: invalid: holdfast: invalid fence of "order:42": the context stands under no lease of that name
	// no lock: 400 <nil>
}
