package echo5mw_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/echo5mw"
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest"
)

// BenchmarkDoor shows what the door costs beyond the lock: "bare" calls core.Locker.Do with
// a fixed name around the same handler, in a middleware as well.
func BenchmarkDoor(b *testing.B) {
	locks := newLocker(b)
	bare, err := locks.With(core.WithWait(0))
	if err != nil {
		b.Fatal(err)
	}
	for name, mw := range map[string]echo.MiddlewareFunc{
		"door": echo5mw.Lock(locks, "order:{id}"),
		"bare": func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				return bare.Do(c.Request().Context(), "order:42", func(context.Context) error { return next(c) })
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			e := echo.New()
			e.POST("/orders/:id", func(c *echo.Context) error { return c.NoContent(http.StatusNoContent) }, mw)
			doortest.Bench(b, e)
		})
	}
}
