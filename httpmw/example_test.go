package httpmw_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
)

// post shows the answer of h.
func post(h http.Handler, target string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, target, http.NoBody))
	fmt.Println(w.Code, w.Header().Get("Content-Type"), w.Header().Get("Retry-After"), w.Body)
}

func ExampleLock() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, _ := core.FromContext(r.Context())
		_, _ = fmt.Fprint(w, "paid under the lock ", lease.Name())
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/pay", httpmw.Lock(locks, "order:{id|int}")(pay))

	post(mux, "/orders/42/pay")

	// While someone else works on the order, payers are turned away.
	err = locks.Do(ctx, "order:42", func(context.Context) error {
		post(mux, "/orders/42/pay")
		return nil
	})
	fmt.Println(err)
	// Output:
	// 200 text/plain; charset=utf-8  paid under the lock order:42
	// 409 application/problem+json 1 {"type":"https://holdfast-go.github.io/problems/held","title":"Resource is in use","status":409,"detail":"Another request is working on the same resource. This request was not started."}
	// <nil>
}
