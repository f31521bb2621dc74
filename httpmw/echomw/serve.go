package echomw

import (
	"context"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// serve calls next under the lock.
func serve(l *lock, c echo.Context, bound any, next echo.HandlerFunc) error {
	req := &request{rule.HTTP{R: c.Request(), Decoded: bound}, c}
	return l.Serve(c.Request().Context(), req, func() error { return next(c) },
		func(ctx context.Context, seen *observe.Response) error { return run(ctx, c, next, seen) })
}

// run calls next with a request that ends with the lease. What stands outside the middleware gets
// its own request back, whose context goes on: for logs, say, or the error handler.
func run(ctx context.Context, c echo.Context, next echo.HandlerFunc, seen *observe.Response) error {
	r, response := c.Request(), c.Response()
	outer, committed := response.Writer, response.Committed
	observed := seen.Wrap(outer)
	response.Writer = observed
	c.SetRequest(r.WithContext(ctx))
	defer func() { // also if it panics: Recover writes
		rule.HandBack(r, c.Request())
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

// request is one that Echo may have routed.
type request struct {
	rule.HTTP

	c echo.Context
}

// Operation implements rule.Request.
func (r *request) Operation() rule.Operation {
	return rule.Operation{Method: r.R.Method, Route: r.c.Path()}
}

// Params implements rule.Request.
func (r *request) Params() []string { return r.c.ParamNames() }

// Query implements rule.Request, as handlers read it: it is parsed once.
func (r *request) Query(name string) []string { return r.c.QueryParams()[name] }

// Param implements rule.Request.
func (r *request) Param(name string) (string, error) {
	if !slices.Contains(r.c.ParamNames(), name) {
		return "", rule.ErrRoute
	}
	return rule.OnceEscaped(param(r.c, name))
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
