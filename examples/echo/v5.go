package main

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/httptour"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/echo5mw"
)

func shopV5(locks *core.Locker) (http.Handler, error) {
	e := echo.New()
	e.Use(middleware.Recover(), middleware.ContextTimeout(30*time.Second)) // outside the locks

	// One at a time for each order, on all machines. Whoever comes second gets 409 at once.
	e.POST("/orders/:id/pay", work5, echo5mw.Lock(locks, "order:{id|int}"))

	// The same lock, so it excludes payments too. And an order ships once: after it has
	// succeeded, it gets 409 for a day.
	e.POST("/orders/:id/ship", work5, echo5mw.Lock(locks, "order:{id|int}", core.WithDedup(24*time.Hour), core.WithDedupScope("ship")))

	// The name is in the JSON body, and whoever comes second waits for up to 5 s.
	e.PUT("/stock", work5, echo5mw.Lock(locks, "stock:{body:sku}", core.WithWait(5*time.Second)))

	// Everything that can be chosen.
	lock, err := echo5mw.New(echo5mw.Config{
		Locker:  locks,
		Key:     "order:{id|int}",
		Skipper: func(c *echo.Context) bool { return c.QueryParam("force") == "yes" },
		ErrorHandler: func(_ *echo.Context, p *httpmw.Problem) error {
			return echo.NewHTTPError(p.Status, "not now: "+p.Title) // for Echo's HTTPErrorHandler
		},
	})
	if err != nil {
		return nil, err
	}
	e.DELETE("/orders/:id", work5, lock)
	return e, nil
}

// work5 is work for Echo v5.
func work5(c *echo.Context) error {
	ctx := c.Request().Context()
	if err := httptour.Work(ctx); err != nil {
		return err
	}
	lease, _ := core.FromContext(ctx)
	return c.JSON(http.StatusOK, map[string]any{"did": c.Path(), "fence": lease.Fence()})
}
