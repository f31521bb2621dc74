package echomw

import (
	"context"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// run calls next with a request that ends with the lease. What stands outside the middleware gets
// its own request back, whose context goes on: for logs, say, or the error handler.
func run(ctx context.Context, c echo.Context, seen *observe.Response, next func() error) error {
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
	return next()
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

// Query implements rule.Request, as handlers read it: it is parsed once.
func (r *request) Query(name string) []string { return r.c.QueryParams()[name] }

// Param implements rule.Request. Where the URL has a RawPath, Echo routes by it, and its parameters are as they were sent.
func (r *request) Param(name string) (string, error) {
	if !slices.Contains(r.c.ParamNames(), name) {
		return "", rule.ErrRoute
	}
	v := r.c.Param(name)
	if plain, err := url.PathUnescape(v); err == nil && r.R.URL.RawPath != "" { // the server has refused a path that fails
		v = plain
	}
	return rule.OnceEscaped(v)
}
