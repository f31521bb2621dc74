package echo5mw_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/echo5mw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// What only this version of Echo does.

// Parameters are unescaped once, whatever the router has done to them, or refused.
func TestEveryRouterConfigMakesTheSameName(t *testing.T) {
	t.Parallel()
	const refused = "400"
	locks := locktest.Memory(t)
	for _, config := range []echo.RouterConfig{
		{}, {UnescapePathParamValues: true}, {UseEscapedPathForMatching: true}, // both together unescape twice
	} {
		for path, want := range map[string]string{
			"/orders/42/x":             "42:x",
			"/orders/%34%32/%78":       "42:x",
			"/orders/a%20b/%78":        "a%20b:x",
			"/orders/100%25/x":         "100%25:x",
			"/orders/%2534%41/x":       refused, // a handler may read "%34A", or unescape it
			"/orders/%2534%41/%2578":   refused,
			"/orders/%252534%41/%2534": refused,
		} {
			e := echo.NewWithConfig(echo.Config{Router: echo.NewRouter(config)})
			e.POST("/orders/:id/:sku", leaseName, echo5mw.Lock(locks, "{id|text}:{sku|text}"))
			if w := mwtest.Call(t, e, http.MethodPost, path); w.Body.String() != want && (want != refused || w.Code != http.StatusBadRequest) {
				t.Errorf("%+v, %s: %d %s, want %s", config, path, w.Code, w.Body, want)
			}
		}
	}
}

// Somebody's own writer is watched from above, and taken for Echo's by nobody.
func TestALossBehindAnotherWriterIsAnswered(t *testing.T) {
	t.Parallel()
	type writer struct{ http.ResponseWriter }
	for body, want := range map[string]int{"": http.StatusServiceUnavailable, "partial": http.StatusOK} {
		e := echo.New()
		e.POST("/orders/:id", func(c *echo.Context) error {
			if body != "" {
				_ = c.String(http.StatusOK, body)
			}
			<-c.Request().Context().Done()
			return nil
		}, func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				mine := &writer{c.Response()}
				c.SetResponse(mine)
				err := next(c)
				if c.Response() != http.ResponseWriter(mine) {
					t.Error("not restored")
				}
				return err
			}
		}, echo5mw.Lock(locktest.Memory(t), "order:{id|int}", short))
		if w := mwtest.Call(t, e, http.MethodPost, "/orders/42"); w.Code != want || body != "" && w.Body.String() != body {
			t.Errorf("%q: answered %d %s", body, w.Code, w.Body)
		}
	}
}

var short = core.WithMaxHold(10 * time.Millisecond)

// leaseName answers with the name of the lease.
func leaseName(c *echo.Context) error {
	x, _ := core.FromContext(c.Request().Context())
	return c.String(http.StatusOK, x.Name())
}
