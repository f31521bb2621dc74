package httpmw_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
)

// In a test of your own, memlock.Store breaks as a lock service does.
func Example_faults() {
	ctx := context.Background()
	store := memlock.New()
	locks, err := core.New(store, core.WithTTL(300*time.Millisecond)) // it is renewed every 100 ms
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	pay := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		store.Steal("order:42") // while the request is at work
		<-r.Context().Done()
		fmt.Println("the handler:", context.Cause(r.Context()))
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/pay", httpmw.Lock(locks, "order:{id|int}")(pay))

	post(mux, "/orders/42/pay")
	store.SetDown(true)
	post(mux, "/orders/7/pay")
	// Output:
	// the handler: holdfast: lease of "order:42" lost: taken
	// 503 application/problem+json  {"type":"https://holdfast-go.github.io/problems/lock-lost","title":"Lock was lost","status":503,"detail":"The server lost its claim on the resource while it worked on it. What it has done is not known.","started":true}
	// 503 application/problem+json 1 {"type":"https://holdfast-go.github.io/problems/unavailable","title":"Lock service is unavailable","status":503,"detail":"The server can not tell now whether the resource is in use. The request was not started."}
}
