package httpmw_test

import (
	"context"
	"errors"
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

// A handler that locks by itself can answer as the middleware does.
func ExampleProblemFor() {
	ctx := context.Background()
	locks, err := core.New(memlock.New(), core.WithWait(0))
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	errSoldOut := errors.New("sold out")
	order := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := locks.Do(r.Context(), "stock:7", func(context.Context) error { return errSoldOut })
		if p := httpmw.ProblemFor(err); p != nil { // never return err's text: it has names and holders
			p.ServeHTTP(w, r)
			return
		}
		http.Error(w, err.Error(), http.StatusGone)
	})

	post(order, "/")
	err = locks.Do(ctx, "stock:7", func(context.Context) error {
		post(order, "/")
		return nil
	})
	fmt.Println(err)
	// Output:
	// 410 text/plain; charset=utf-8  sold out
	//
	// 409 application/problem+json  {"type":"https://holdfast-go.github.io/problems/held","title":"Resource is in use","status":409,"detail":"Another request is working on the same resource. What this request has done is not known.","started":true}
	// <nil>
}
