package echo5mw

import (
	"log/slog"

	"github.com/labstack/echo/v5"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/door"
)

// Lock returns middleware that holds the lock that key names around a handler. It panics
// on a key or an option that cannot work; [Config.ToMiddleware] returns an error instead.
// What [httpmw.Lock] says of answers, panics and callers that leave is true here too.
//
// It belongs on routes, behind all other middleware. Before the router (Echo.Pre), and for
// requests that match no route (Echo.Use, and groups), there are no parameters: such requests
// get 500, unless Config.Skipper lets them pass.
func Lock(l *core.Locker, key string, opts ...core.Option) echo.MiddlewareFunc {
	mw, err := Config{Locker: l, Key: key, Options: opts}.ToMiddleware()
	if err != nil {
		panic("echo5mw: " + err.Error())
	}
	return mw
}

// Config is [Lock] with everything that can be chosen. Locker and one of Key and KeyFunc
// are required.
type Config struct {
	Locker *core.Locker

	// Key is the template of the lock's name, with the sources of [httpmw.Config]. A parameter
	// of the path is c.Param, unescaped; {http:route} is c.Path.
	Key string
	// KeyFunc makes the lock's name, where no template can. Names are 1 to 200 bytes of
	// UTF-8 without braces, spaces and control characters: [key.Key.Name] makes such of
	// anything. An error is answered with 400, and is the Problem's Err. c.Param is as
	// Echo has it, not unescaped.
	KeyFunc func(c *echo.Context) (string, error)

	// Options are those of the lock. They are checked once, by ToMiddleware. Without
	// [core.WithWait] among them the door does not wait. With [core.WithDedup], also from
	// New or With, a request is done if the handler returned nil and its status is below 400,
	// but not if it was hijacked. The same work is what has the same method and route, unless
	// [core.WithDedupScope], here, in With or in New, says otherwise.
	Options []core.Option

	// Skipper lets requests pass without a lock, and without a look at the key. The default,
	// nil, lets none. The type of package echo/middleware fits.
	Skipper func(c *echo.Context) bool

	// HeldStatus answers a request whose lock is held: 409, the default, also chosen by
	// zero, or 423 (http.StatusLocked).
	HeldStatus int

	// MaxBody is how many bytes of a body are looked at for {body:…} and {form:…}, and
	// kept in memory while the request runs. A larger body is answered with 400. The
	// default, also chosen by zero, is 1 MiB. Other requests' bodies are not touched.
	MaxBody int64

	// ErrorHandler answers in the place of the default, which writes p and returns it wrapped
	// in an [echo.HTTPError]. It is called for the door's own refusals, and
	// for a loss if nothing was written yet, with the request from outside the door. What
	// it returns goes on to Echo; if that is nil, it has to have answered:
	//
	//	return echo.NewHTTPError(p.Status, p.Title) // rendered by Echo's HTTPErrorHandler
	ErrorHandler func(c *echo.Context, p *httpmw.Problem) error

	// Logger is told, once for each route, if the route lacks a source of the key, or if the
	// options cannot work there. The default, also chosen by nil, is [slog.Default] at that time.
	Logger *slog.Logger
}

// ToMiddleware returns the middleware. What cannot work is [core.ErrInvalid].
func (c Config) ToMiddleware() (echo.MiddlewareFunc, error) {
	d, err := door.New(door.Rule{
		Locker: c.Locker, Key: c.Key, KeyFunc: c.KeyFunc != nil, Options: c.Options,
		HeldStatus: c.HeldStatus, MaxBody: c.MaxBody, Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	if c.ErrorHandler == nil {
		c.ErrorHandler = write
	}
	l := &lock{Config: c, door: d}
	return func(next echo.HandlerFunc) echo.HandlerFunc { // called for every request
		return func(c *echo.Context) error { return l.serve(c, next) }
	}, nil
}

// write is the default ErrorHandler. Since it declares the length of what it writes, a
// custom HTTPErrorHandler that does not look whether the response is committed adds nothing.
func write(c *echo.Context, p *httpmw.Problem) error {
	if r, err := echo.UnwrapResponse(c.Response()); err != nil || !r.Committed {
		p.ServeHTTP(c.Response(), c.Request())
	}
	return echo.NewHTTPError(p.Status, p.Title).Wrap(p)
}
