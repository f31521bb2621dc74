package echomw_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest/echotest"
)

func TestTheTable(t *testing.T) {
	t.Parallel()
	version.Run(t)
}

type app = echotest.App[echo.Context, echo.HandlerFunc, echo.MiddlewareFunc]

var version = echotest.Version[echo.Context, echo.HandlerFunc, echo.MiddlewareFunc]{
	Package:    "echomw",
	Lock:       echomw.Lock,
	Middleware: echomw.New,
	NewBind:    echomw.NewBind[mwtest.Pay],
	Bind:       echomw.Bind[mwtest.Pay],
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
