package ginmw_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw/ginmw"
)

// What follows is the code of docs/guides/http.md; examples/readme_test.go compares them.

func routes(locks *core.Locker, ship gin.HandlerFunc) *gin.Engine {
	r := gin.New()
	r.Use(gin.Recovery()) // outside the locks

	// One at a time for each order. A second request gets 409 at once.
	r.POST("/orders/:id/pay", ginmw.Lock(locks, "order:{id|int}"), pay)

	// The same lock, so paying and shipping exclude each other. An order ships once: later requests get 409 for a day.
	r.POST("/orders/:id/ship", ginmw.Lock(locks, "order:{id|int}", core.WithDedup(24*time.Hour), core.WithDedupScope("ship")), ship)

	r.POST("/pay", ginmw.Bind(locks, "order:{OrderID}", func(c *gin.Context, req *PayRequest) {
		c.JSON(http.StatusOK, req) // under the lock of req.OrderID
	}))
	return r
}

type PayRequest struct {
	OrderID int64 `json:"order_id"`
}

func pay(c *gin.Context) {
	ctx := c.Request.Context()
	lease, _ := core.FromContext(ctx)
	if err := charge(ctx, c.Param("id"), lease.Fence()); err != nil {
		_ = c.Error(err) // for the middleware that answers
		return
	}
	c.Status(http.StatusNoContent)
}

func charge(ctx context.Context, _ string, _ uint64) error { return ctx.Err() }

func Example() {
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	r := routes(locks, func(c *gin.Context) { c.String(http.StatusOK, "shipped") })
	for _, path := range []string{"/orders/42/pay", "/orders/42/ship", "/orders/42/ship", "/pay"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, http.NoBody))
		fmt.Println(w.Code, w.Body, path)
	}
	// Output:
	// 204  /orders/42/pay
	// 200 shipped /orders/42/ship
	// 409 {"type":"https://holdfast-go.github.io/problems/already-processed","title":"Already processed","status":409,"detail":"An earlier request has done this already. This request was not started."} /orders/42/ship
	// 400 {"type":"https://holdfast-go.github.io/problems/invalid-key","title":"Resource is not identified","status":400,"detail":"The request has no value for {OrderID}, which says which resource it is for. This request was not started.","source":"OrderID","reason":"missing"} /pay
}
