package echo5mw_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/echo5mw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest/echotest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestTheTable(t *testing.T) {
	t.Parallel()
	version.Run(t)
}

type app = echotest.App[*echo.Context, echo.HandlerFunc, echo.MiddlewareFunc]

var version = echotest.Version[*echo.Context, echo.HandlerFunc, echo.MiddlewareFunc]{
	Package:    "echo5mw",
	Lock:       echo5mw.Lock,
	Middleware: echo5mw.New,
	NewBind:    echo5mw.NewBind[mwtest.Pay],
	Serve:      serve,
	Response:   (*echo.Context).Response,
	Writer: func(c *echo.Context) http.ResponseWriter {
		if response, ok := c.Response().(*echo.Response); ok {
			return response.ResponseWriter
		}
		return nil
	},
	SetWriter: func(c *echo.Context, w http.ResponseWriter) { c.Response().(*echo.Response).ResponseWriter = w },
	HTTPError: func(code int, message string) error { return echo.NewHTTPError(code, message) },
	Wrap:      echo.WrapMiddleware,
}

func serve(a app) http.Handler {
	e := echo.New()
	e.Pre(a.Pre...)
	e.Use(a.Use...)
	for _, route := range a.Routes {
		method, path, _ := strings.Cut(route, " ")
		e.Add(method, path, a.Handler, a.With...)
	}
	if a.OnError != nil {
		e.HTTPErrorHandler = a.OnError
	}
	return e
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	return c.String(http.StatusOK, locktest.NameOf(c.Request().Context()))
}
