package echomw_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"go.uber.org/goleak"

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
	Serve:      serve,
	Response:   func(c echo.Context) http.ResponseWriter { return c.Response() },
	Writer:     func(c echo.Context) http.ResponseWriter { return c.Response().Writer },
	SetWriter:  func(c echo.Context, w http.ResponseWriter) { c.Response().Writer = w },
	HTTPError:  func(code int, message string) error { return echo.NewHTTPError(code, message) },
	Wrap:       echo.WrapMiddleware,
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
		e.Debug = true // whatever is in the error may then be told
		e.HTTPErrorHandler = func(err error, c echo.Context) { a.OnError(c, err) }
	}
	return e
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
