package coalesce_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/coalesce"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// A webhook says that a catalogue has changed. However many come, no two rebuilds run at once, and one begins after the last
// of them.
func Example() {
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(context.Background())
	group, err := coalesce.New(locks)
	if err != nil {
		panic(err)
	}
	rebuild := func(context.Context) error { fmt.Println("rebuilt"); return nil }

	webhook := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := group.Do(r.Context(), coalesce.Call{Name: "catalog:7", Work: "rebuild", Wait: time.Minute}, rebuild)
		switch {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case errors.Is(err, coalesce.ErrCovered): // it will be rebuilt after this moment
			w.WriteHeader(http.StatusAccepted)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	w := httptest.NewRecorder()
	webhook.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/catalogs/7/changed", http.NoBody))
	fmt.Println(w.Code)
	// Output:
	// rebuilt
	// 204
}
