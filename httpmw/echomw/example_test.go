package echomw_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
)

// post shows the answer of e.
func post(e *echo.Echo, target string) {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, target, http.NoBody))
	fmt.Println(w.Code, w.Body)
}

func ExampleLock() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	pay := func(c echo.Context) error {
		lease, _ := core.FromContext(c.Request().Context())
		return c.String(http.StatusOK, "paid under the lock "+lease.Name())
	}
	e := echo.New()
	e.POST("/orders/:id/pay", pay, echomw.Lock(locks, "order:{id|int}", core.WithDedup(24*time.Hour), core.WithDedupScope("pay")))

	post(e, "/orders/42/pay")
	post(e, "/orders/42/pay")
	// Output:
	// 200 paid under the lock order:42
	// 409 {"type":"https://holdfast-go.github.io/problems/already-processed","title":"Already processed","status":409,"detail":"An earlier request has done this already. This request was not started."}
}
