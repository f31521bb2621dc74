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

func ExampleLock() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	r := gin.New()
	r.POST("/orders/:id/pay", ginmw.Lock(locks, "order:{id|int}", core.WithDedup(24*time.Hour), core.WithDedupScope("pay")), func(c *gin.Context) {
		lease, _ := core.FromContext(c.Request.Context())
		c.String(http.StatusOK, "paid under the lock "+lease.Name())
	})
	for range 2 {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders/42/pay", http.NoBody))
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 paid under the lock order:42
	// 409 {"type":"https://holdfast-go.github.io/problems/already-processed","title":"Already processed","status":409,"detail":"An earlier request has done this already. This one was not started."}
}
