package echomw

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/door"
	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
	"github.com/holdfast-go/holdfast/httpmw/internal/reqkey"
)

// lock is a rule made ready.
type lock struct {
	Config

	door *door.Door
}

func (l *lock) serve(c echo.Context, next echo.HandlerFunc) error {
	if l.Skipper != nil && l.Skipper(c) {
		return l.own(c, next(c))
	}
	names, fault := l.names(c)
	return l.hold(c, names, fault, next)
}

// hold calls next under the locks of the names, unless there is a fault with them.
func (l *lock) hold(c echo.Context, names []string, fault *door.Fault, next echo.HandlerFunc) error {
	if fault != nil {
		return l.ErrorHandler(c, httpmw.ProblemFor(fault))
	}
	var err error // the handler's own
	wanted := door.Operation{Method: c.Request().Method, Route: c.Path()}
	fault = l.door.Do(c.Request().Context(), wanted, names, func(ctx context.Context, seen *observe.Response) error {
		err = run(ctx, c, next, seen)
		return err
	})
	if fault == nil {
		return l.own(c, err)
	}
	p := httpmw.ProblemFor(fault)
	p.Err = errors.Join(p.Err, err)
	return l.ErrorHandler(c, p)
}

// own is what becomes of a handler's error. One of core has the name of a lock in its text, and its
// holder's label, and Echo does not know what it means: the table does. An error that Echo knows is
// the handler's own answer, and so is a Problem.
func (l *lock) own(c echo.Context, err error) error {
	if _, known := errors.AsType[*echo.HTTPError](err); err == nil || known || c.Response().Committed {
		return err
	}
	if p := httpmw.ProblemFor(err); p != nil {
		return l.ErrorHandler(c, p)
	}
	return err
}

// run calls next with a request that ends with the lease. What stands outside the door gets
// its own request back, whose context goes on: for logs, say, or the error handler.
func run(ctx context.Context, c echo.Context, next echo.HandlerFunc, seen *observe.Response) error {
	r, response := c.Request(), c.Response()
	outer, committed := response.Writer, response.Committed
	observed := seen.Wrap(outer)
	response.Writer = observed
	c.SetRequest(r.WithContext(ctx))
	defer func() { // also if it panics: Recover writes
		door.HandBack(r, c.Request())
		c.SetRequest(r)
		c.SetResponse(response)
		if response.Writer == observed { // else somebody has put in his own, and not taken it out
			response.Writer = outer
		}
		if !seen.Written() { // Echo takes an informational header for the response
			response.Committed = committed
		}
	}()
	return next(c)
}

func (l *lock) names(c echo.Context) ([]string, *door.Fault) {
	if l.KeyFunc != nil {
		return door.Made(l.KeyFunc(c))
	}
	from := &reqkey.HTTP{R: c.Request(), Pattern: c.Path(), PathParam: func(name string) (string, bool) {
		return param(c, name), slices.Contains(c.ParamNames(), name)
	}}
	return l.door.Names(c.Request().Context(), from, c.ParamNames)
}

// param returns a path parameter unescaped: where the URL has a RawPath, Echo routes by it,
// and its parameters are as they were sent.
func param(c echo.Context, name string) string {
	v := c.Param(name)
	if c.Request().URL.RawPath == "" {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v // never: the server has refused such a path
}
