package fibermw_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover" //nolint:predeclared // Fiber's name for it

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw/fibermw"
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

func Example() {
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	app := routes(locks, func(c fiber.Ctx) error { return c.SendString("shipped") })
	for _, path := range []string{"/orders/42/pay", "/orders/42/ship", "/orders/42/ship", "/pay"} {
		res, err := app.Test(httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, http.NoBody))
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Println(res.StatusCode, string(body), path)
	}
	// Output:
	// 204  /orders/42/pay
	// 200 shipped /orders/42/ship
	// 409 {"type":"https://holdfast-go.github.io/problems/already-processed","title":"Already processed","status":409,"detail":"An earlier request has done this already. This request was not started."} /orders/42/ship
	// 400 {"type":"https://holdfast-go.github.io/problems/invalid-key","title":"Resource is not identified","status":400,"detail":"The request has no value for {OrderID}, which says which resource it is for. This request was not started.","source":"OrderID","reason":"missing"} /pay
}
