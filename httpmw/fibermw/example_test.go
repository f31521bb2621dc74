package fibermw_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw/fibermw"
)

func ExampleLock() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	app := fiber.New()
	app.Post("/orders/:id/pay", fibermw.Lock(locks, "order:{id|int}", core.WithDedup(24*time.Hour), core.WithDedupScope("pay")), func(c fiber.Ctx) error {
		lease, _ := core.FromContext(c.Context())
		return c.SendString("paid under the lock " + lease.Name())
	})
	for range 2 {
		res, err := app.Test(httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders/42/pay", http.NoBody))
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Println(res.StatusCode, string(body))
	}
	// Output:
	// 200 paid under the lock order:42
	// 409 {"type":"https://holdfast-go.github.io/problems/already-processed","title":"Already processed","status":409,"detail":"An earlier request has done this already. This one was not started."}
}
