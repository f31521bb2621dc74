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
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest"
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest/echotest"
)

func TestDoor(t *testing.T) {
	t.Parallel()
	doortest.Run(t, version.Door)
}

func TestEcho(t *testing.T) {
	t.Parallel()
	version.Run(t)
}

func BenchmarkDoor(b *testing.B) { version.Bench(b) }

type app = echotest.App[echo.Context, echo.HandlerFunc, echo.MiddlewareFunc]

var version = echotest.Version[echo.Context, echo.HandlerFunc, echo.MiddlewareFunc]{
	Package: "echomw",
	Lock:    echomw.Lock,
	Middleware: func(c echotest.Config[echo.Context]) (echo.MiddlewareFunc, error) {
		return echomw.Config(c).ToMiddleware()
	},
	Bind: echomw.Bind[echotest.Pay],
	NewBind: func(c echotest.Config[echo.Context], handler func(echo.Context, *echotest.Pay) error) (echo.HandlerFunc, error) {
		return echomw.NewBind(echomw.Config(c), handler)
	},
	Serve:     serve,
	Response:  func(c echo.Context) http.ResponseWriter { return c.Response() },
	Writer:    func(c echo.Context) http.ResponseWriter { return c.Response().Writer },
	SetWriter: func(c echo.Context, w http.ResponseWriter) { c.Response().Writer = w },
	HTTPError: func(code int, message string) error { return echo.NewHTTPError(code, message) },
	Code: func(err error) int {
		if he, ok := errors.AsType[*echo.HTTPError](err); ok {
			return he.Code
		}
		return 0
	},
	Recover: middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}),
	Gzip:    middleware.Gzip(),
	Timeout: middleware.ContextTimeout,
	BasicAuth: func(valid func(user, password string) bool) echo.MiddlewareFunc {
		return middleware.BasicAuth(func(user, password string, _ echo.Context) (bool, error) {
			return valid(user, password), nil
		})
	},
	Wrap: echo.WrapMiddleware,
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
	}, echomw.Lock(doortest.MemoryLocker(t), "order:{id|int}"))
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://api.example.com/orders/42", http.NoBody))
	if name != "order:42" {
		t.Errorf("%d, and the handler ran under %q", w.Code, name)
	}
}

// The router has chosen the handler before that middleware changes the method.
func TestARequestWhoseMethodIsOverriddenIsLocked(t *testing.T) {
	t.Parallel()
	e := echo.New()
	e.Use(middleware.MethodOverride())
	var name string
	e.POST("/orders/:id", func(c echo.Context) error {
		if x, ok := core.FromContext(c.Request().Context()); ok {
			name = x.Name()
		}
		return c.NoContent(http.StatusNoContent)
	}, echomw.Lock(doortest.MemoryLocker(t), "order:{id|int}"))
	r := httptest.NewRequest(http.MethodPost, "/orders/42", http.NoBody)
	r.Header.Set(echo.HeaderXHTTPMethodOverride, http.MethodPatch)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if w.Code != http.StatusNoContent || name != "order:42" {
		t.Errorf("%d, and the handler ran under %q", w.Code, name)
	}
}
