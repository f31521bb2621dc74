package echomw

import (
	"context"
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
	"github.com/holdfast-go/holdfast/httpmw/internal/settings"
)

// Lock returns middleware that holds the lock that key names around a handler. It panics on a key or
// an option that cannot work; [New] returns an error instead. Answers, panics and
// callers that leave are handled as in [httpmw.Lock].
//
// Use it on routes, after all other middleware. On Echo.Use and groups, requests that match no route are
// locked, too. They have no parameters, and neither has any request before the router (Echo.Pre). If the key
// needs one, such requests get 500, unless Config.Skipper lets them pass.
func Lock(l *core.Locker, key string, opts ...core.Option) echo.MiddlewareFunc {
	return rule.Must[echo.MiddlewareFunc]("echomw")(New(Config{Locker: l, Key: key, Options: opts}))
}

// Config is [Lock] with all settings.
//
// KeyFunc reads c.Param as Echo has it, not unescaped. The types of package echo/middleware fit for the Skipper. The default
// ErrorHandler writes the Problem, and returns it as the Internal of an [echo.HTTPError]. Echo gets what an ErrorHandler
// returns. If that is nil, it must have written an answer:
//
//	return echo.NewHTTPError(p.Status, p.Title) // rendered by Echo's HTTPErrorHandler
type Config = httpmw.Settings[echo.Context, func(c echo.Context, p *httpmw.Problem) error]

// New returns the middleware. Settings that cannot work are [core.ErrInvalid].
func New(c Config) (echo.MiddlewareFunc, error) {
	l, err := newLock(c, nil)
	if err != nil {
		return nil, err
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc { // called for every request
		return func(c echo.Context) error { return l.Serve(c, nil, func() error { return next(c) }) }
	}, nil
}

type lock = settings.Lock[*request, echo.Context]

func newLock(c Config, fields adapter.Sources[*request]) (*lock, error) {
	if c.ErrorHandler == nil {
		c.ErrorHandler = write
	}
	return settings.New(c, fields, settings.Framework[*request, echo.Context]{
		Request: func(c echo.Context, bound any) (context.Context, *request) {
			return c.Request().Context(), &request{rule.HTTP{R: c.Request(), Decoded: bound}, c}
		},
		Of:  func(r *request) echo.Context { return r.c },
		Run: run, Answer: c.ErrorHandler,
		Known: func(c echo.Context, err error) bool {
			_, known := errors.AsType[*echo.HTTPError](err)
			return known || c.Response().Committed
		},
	})
}

// write is the default ErrorHandler. Since it declares the length of what it writes, a
// custom HTTPErrorHandler that does not look whether the response is committed adds nothing.
func write(c echo.Context, p *httpmw.Problem) error {
	if !c.Response().Committed {
		p.ServeHTTP(c.Response(), c.Request())
	}
	return &echo.HTTPError{Code: p.Status, Message: p.Title, Internal: p}
}
