package ginmw_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/ginmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
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

func TestTheCodeOfThePageRuns(t *testing.T) {
	t.Parallel()
	r := routes(mwtest.MemoryLocker(t), func(c *gin.Context) { c.Status(http.StatusNoContent) })
	for _, request := range []struct {
		path string
		code int
	}{{"/orders/42/pay", 204}, {"/orders/42/ship", 204}, {"/orders/42/ship", 409}, {"/pay", 400}} {
		if w := call(t, r, request.path); w.Code != request.code {
			t.Errorf("%s: %d, want %d", request.path, w.Code, request.code)
		}
	}
}
