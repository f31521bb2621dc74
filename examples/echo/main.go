// Echo guards the routes of a little shop, with nothing to set up:
//
//	go run ./examples/echo
//	curl -i -X POST localhost:8080/orders/42/pay & curl -i -X POST localhost:8080/orders/42/pay; wait
//	curl -i -X POST localhost:8080/orders/42/ship
//	curl -i -X PUT localhost:8080/stock --json '{"sku":"A7","count":1}'
//
// Echo v5 is the same with package echo5mw. examples/start is net/http, and examples/service a whole service on Redis.
package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
)

func main() {
	locks, err := core.New(memlock.New()) // one for the whole process; with core/redislock all machines share the locks
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(shop(locks).Start("localhost:8080"))
}

func shop(locks *core.Locker) *echo.Echo {
	e := echo.New()
	e.Use(middleware.Recover(), middleware.ContextTimeout(30*time.Second)) // outside the locks

	// One at a time for each order. Whoever comes second gets 409 at once.
	e.POST("/orders/:id/pay", work, echomw.Lock(locks, "order:{id|int}"))

	// The same lock, so it excludes payments too. And an order ships once: after it has succeeded, it gets 409 for a day.
	e.POST("/orders/:id/ship", work, echomw.Lock(locks, "order:{id|int}", core.WithDedup(24*time.Hour), core.WithDedupScope("ship")))

	// The name is in the JSON body, and whoever comes second waits for up to 5 s.
	e.PUT("/stock", work, echomw.Lock(locks, "stock:{body:sku}", core.WithWait(5*time.Second)))

	// Everything that can be chosen. New returns an error where Lock panics.
	cancel, err := echomw.New(echomw.Config{
		Locker:  locks,
		Key:     "order:{id|int}",
		Skipper: func(c echo.Context) bool { return c.QueryParam("force") == "yes" },
		ErrorHandler: func(_ echo.Context, p *httpmw.Problem) error {
			return echo.NewHTTPError(p.Status, "not now: "+p.Title) // for Echo's HTTPErrorHandler
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	e.DELETE("/orders/:id", work, cancel)
	return e
}

// work runs under the lock. The request's context ends when the client has left, or the lock is lost.
func work(c echo.Context) error {
	ctx := c.Request().Context()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return context.Cause(ctx) // an error of core is answered as it should be
	}
	lease, _ := core.FromContext(ctx)
	return c.JSON(http.StatusOK, map[string]any{"did": c.Path(), "fence": lease.Fence()})
}
