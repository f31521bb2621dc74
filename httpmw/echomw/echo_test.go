package echomw_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest/echotest"
)

func TestTheTable(t *testing.T) {
	t.Parallel()
	version.Run(t)
}

func TestConstructorsPanicOnWhatCannotWork(t *testing.T) {
	t.Parallel()
	locks := mwtest.MemoryLocker(t)
	mwtest.Panics(t, "echomw", func() { echomw.Lock(locks, "order:{id") })
	mwtest.Panics(t, "echomw", func() { echomw.Bind(locks, "order:{ID}", func(echo.Context, *mwtest.Pay) error { return nil }) })
}

func BenchmarkLock(b *testing.B) { version.Bench(b) }

type app = echotest.App[echo.Context, echo.HandlerFunc, echo.MiddlewareFunc]

var version = echotest.Version[echo.Context, echo.HandlerFunc, echo.MiddlewareFunc]{
	Package:    "echomw",
	Lock:       echomw.Lock,
	Middleware: echomw.New,
	NewBind:    echomw.NewBind[mwtest.Pay],
	Serve:      serve,
	Response:   func(c echo.Context) http.ResponseWriter { return c.Response() },
	Writer:     func(c echo.Context) http.ResponseWriter { return c.Response().Writer },
	SetWriter:  func(c echo.Context, w http.ResponseWriter) { c.Response().Writer = w },
	HTTPError:  func(code int, message string) error { return echo.NewHTTPError(code, message) },
	Code: func(err error) int {
		if he, ok := errors.AsType[*echo.HTTPError](err); ok {
			return he.Code
		}
		return 0
	},
	Wrap:     echo.WrapMiddleware,
	Override: middleware.MethodOverride(),
}

func serve(a app) http.Handler {
	e := echo.New()
	e.Pre(a.Pre...)
	e.Use(a.Use...)
	add, with := e.Add, a.With
	if a.Group != "" {
		add, with = e.Group(a.Group, a.With...).Add, nil
	}
	for _, route := range a.Routes {
		method, path, _ := strings.Cut(route, " ")
		add(method, path, a.Handler, with...)
	}
	if a.OnError != nil {
		e.Debug = true // whatever is in the error may then be told
		e.HTTPErrorHandler = func(err error, c echo.Context) { a.OnError(c, err) }
	}
	return e
}

// The default router has the path, too, for another method.
func TestARouteOfAHostIsLocked(t *testing.T) {
	t.Parallel()
	e := echo.New()
	e.GET("/orders/:id", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	var name string
	e.Host("api.example.com").POST("/orders/:id", func(c echo.Context) error {
		if x, ok := core.FromContext(c.Request().Context()); ok {
			name = x.Name()
		}
		return c.NoContent(http.StatusNoContent)
	}, echomw.Lock(mwtest.MemoryLocker(t), "order:{id|int}"))
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://api.example.com/orders/42", http.NoBody))
	if name != "order:42" {
		t.Errorf("%d, and the handler ran under %q", w.Code, name)
	}
}
