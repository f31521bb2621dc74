package echomw

import (
	"log/slog"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// Lock returns middleware that holds the lock that key names around a handler. It panics on a key or
// an option that cannot work; [Config.ToMiddleware] returns an error instead. Answers, panics and
// callers that leave are handled as in [httpmw.Lock].
//
// Use it on routes, after all other middleware. On Echo.Use and groups, requests that match no route are
// locked, too. They have no parameters, and neither has any request before the router (Echo.Pre). If the key
// needs one, such requests get 500, unless Config.Skipper lets them pass.
func Lock(l *core.Locker, key string, opts ...core.Option) echo.MiddlewareFunc {
	mw, err := Config{Locker: l, Key: key, Options: opts}.ToMiddleware()
	if err != nil {
		panic("echomw: " + err.Error())
	}
	return mw
}

// Config is [Lock] with all settings. Locker and one of Key and KeyFunc are required.
type Config struct {
	Locker *core.Locker

	// Key is the template of the lock's name, with the sources of [httpmw.Config]. A path parameter
	// is c.Param, unescaped.
	//
	// Work that needs several names at once has several templates, with a space between them.
	Key string
	// KeyFunc makes the lock's name, where no template can. Names are 1 to 200 bytes of UTF-8 without
	// braces, spaces and control characters; (*key.Key).Name makes a valid name from any values. An
	// error is answered with 400, and becomes the Problem's Err. Here c.Param is as Echo has it, not
	// unescaped.
	KeyFunc func(c echo.Context) (string, error)

	// Options are those of the lock. ToMiddleware checks them once. Without [core.WithWait] among
	// them, the middleware does not wait.
	//
	// [core.WithDedup] needs a [core.WithDedupScope], here, in With or in New. It names what is done once, such as
	// "ship": the middleware may stand before routes that do several things. A request is done if the handler
	// returned nil and its status is below 400. A hijacked request is never done.
	Options []core.Option

	// Skipper selects requests that pass without a lock. Their key is not looked at. The default, nil, selects none. The type of package echo/middleware fits.
	Skipper func(c echo.Context) bool

	// MaxBody limits how many bytes of a body are read for {body:…}, and kept in memory while the
	// request runs. A larger body is answered with 413. Zero means 1 MiB, the default.
	// Bodies are not touched if the key does not need them.
	MaxBody int64

	// ErrorHandler answers instead of the default, which writes p and returns it as the Internal of
	// an [echo.HTTPError]. It is called for the middleware's own refusals, and for a loss if nothing
	// was written yet, with the request from outside the middleware. Echo gets what it returns. If
	// that is nil, it must have written an answer:
	//
	//	return echo.NewHTTPError(p.Status, p.Title) // rendered by Echo's HTTPErrorHandler
	ErrorHandler func(c echo.Context, p *httpmw.Problem) error

	// Logger gets one line for each route whose requests fail because the route lacks a source of the
	// key, or because the options cannot work there. For nil, the default, it is [slog.Default] at
	// that time.
	Logger *slog.Logger
}

// ToMiddleware returns the middleware. Settings that cannot work are [core.ErrInvalid].
func (c Config) ToMiddleware() (echo.MiddlewareFunc, error) {
	l, err := c.lock(nil)
	if err != nil {
		return nil, err
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc { // called for every request
		return func(c echo.Context) error { return l.serve(c, nil, next) }
	}, nil
}

func (c Config) lock(fields adapter.Sources[*request]) (*lock, error) {
	s := rule.Settings[*request]{Locker: c.Locker, Key: c.Key, Fields: fields, Options: c.Options, MaxBody: c.MaxBody, Logger: c.Logger}
	if c.KeyFunc != nil {
		s.KeyFunc = func(r *request) (string, error) { return c.KeyFunc(r.c) }
	}
	if c.ErrorHandler == nil {
		c.ErrorHandler = write
	}
	ready, err := rule.New(s)
	return &lock{c, ready}, err
}

// write is the default ErrorHandler. Since it declares the length of what it writes, a
// custom HTTPErrorHandler that does not look whether the response is committed adds nothing.
func write(c echo.Context, p *httpmw.Problem) error {
	if !c.Response().Committed {
		p.ServeHTTP(c.Response(), c.Request())
	}
	return &echo.HTTPError{Code: p.Status, Message: p.Title, Internal: p}
}
