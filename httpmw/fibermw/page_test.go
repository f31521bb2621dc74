package fibermw_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover" //nolint:predeclared // Fiber's name for it

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/fibermw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
)

// What follows is the code of docs/guides/http.md; examples/readme_test.go compares them.

func routes(locks *core.Locker, ship fiber.Handler) *fiber.App {
	app := fiber.New()
	app.Use(recover.New()) // outside the locks

	// One at a time for each order. A second request gets 409 at once.
	app.Post("/orders/:id/pay", fibermw.Lock(locks, "order:{id|int}"), pay)

	// The same lock, so paying and shipping exclude each other. An order ships once: later requests get 409 for a day.
	app.Post("/orders/:id/ship", fibermw.Lock(locks, "order:{id|int}", core.WithDedup(24*time.Hour), core.WithDedupScope("ship")), ship)

	app.Post("/pay", fibermw.Bind(locks, "order:{OrderID}", func(c fiber.Ctx, req *PayRequest) error {
		return c.JSON(req) // under the lock of req.OrderID
	}))
	return app
}

type PayRequest struct {
	OrderID int64 `json:"order_id"`
}

func pay(c fiber.Ctx) error {
	ctx := c.Context() // ends when the lock is lost, so do the work with it
	lease, _ := core.FromContext(ctx)
	if err := charge(ctx, c.Params("id"), lease.Fence()); err != nil {
		return err
	}
	return c.SendStatus(http.StatusNoContent)
}

func charge(ctx context.Context, _ string, _ uint64) error { return ctx.Err() }

func TestTheCodeOfThePageRuns(t *testing.T) {
	t.Parallel()
	app := routes(mwtest.MemoryLocker(t), func(c fiber.Ctx) error { return c.SendStatus(http.StatusNoContent) })
	for _, request := range []struct {
		path string
		code int
	}{{"/orders/42/pay", 204}, {"/orders/42/ship", 204}, {"/orders/42/ship", 409}, {"/pay", 400}} {
		if status, body, _ := call(t, app, request.path); status != request.code {
			t.Errorf("%s: %d %s, want %d", request.path, status, body, request.code)
		}
	}
}
