package echo5mw_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/holdfast-go/holdfast/httpmw/echo5mw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest/echotest"
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
	Bind:       echo5mw.Bind[mwtest.Pay],
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
		e.HTTPErrorHandler = a.OnError
	}
	return e
}
