package echomw_test

import (
	"context"
	"fmt"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
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

	e := echo.New()
	e.POST("/orders/:id/pay", func(c echo.Context) error {
		store.Lose("order:42") // while the request is at work
		<-c.Request().Context().Done()
		cause := context.Cause(c.Request().Context())
		fmt.Println("the handler:", cause)
		return cause
	}, echomw.Lock(locks, "order:{id|int}"))

	post(e, "/orders/42/pay")
	store.SetDown(true)
	post(e, "/orders/7/pay")
	// Output:
	// the handler: holdfast: lease of "order:42" lost: taken
	// 503 {"type":"https://holdfast-go.github.io/problems/lock-lost","title":"Lock was lost","status":503,"detail":"The server lost its claim on the resource while it worked on it. What it has done is not known.","started":true}
	// 503 {"type":"https://holdfast-go.github.io/problems/unavailable","title":"Lock service is unavailable","status":503,"detail":"The server can not tell now whether the resource is in use. The request was not started."}
}
