package inspector_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// The page in a service, below a path of its own. Put it behind what knows who may see it.
func ExampleNew() {
	seen := inspector.NewRecorder()
	locks, err := core.New(memlock.New(), core.WithObserver(seen.Observe))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())
	page := inspector.New(locks, inspector.WithRecorder(seen))
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("/locks/", page)

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/locks/", http.NoBody))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
