package echo5mw

import (
	"context"
	"net/url"

	"github.com/labstack/echo/v5"

	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// run calls next with a request that ends with the lease. What stands outside the middleware gets
// its own request back, whose context goes on: for logs, say, or the error handler.
func run(ctx context.Context, c *echo.Context, seen *observe.Response, next func() error) error {
	r := c.Request()
	c.SetRequest(r.WithContext(ctx))
	restore := watch(c, seen)
	defer func() { // also if it panics: Recover writes
		rule.HandBack(r, c.Request())
		c.SetRequest(r)
		restore()
	}()
	return next()
}

// watch lets seen see what is written. Echo's own Response stays where it is, for those who
// take c.Response for one, and is watched from below; anybody else's is watched from above.
func watch(c *echo.Context, seen *observe.Response) (restore func()) {
	outer := c.Response()
	response, ok := outer.(*echo.Response)
	if !ok {
		c.SetResponse(seen.Wrap(outer))
		return func() { c.SetResponse(outer) }
	}
	below, committed := response.ResponseWriter, response.Committed
	observed := seen.Wrap(below)
	response.ResponseWriter = observed
	return func() {
		c.SetResponse(outer)
		if response.ResponseWriter == observed { // else somebody has put in his own, and not taken it out
			response.ResponseWriter = below
		}
		if !seen.Written() { // Echo takes an informational header for the response
			response.Committed = committed
		}
	}
}

// request is one that Echo may have routed.
type request struct {
	rule.HTTP

	c *echo.Context
}

// Operation implements rule.Request.
func (r *request) Operation() rule.Operation {
	return rule.Operation{Method: r.R.Method, Route: r.c.Path()}
}

// Query implements rule.Request, as handlers read it: it is parsed once.
func (r *request) Query(name string) []string { return r.c.QueryParams()[name] }

// Param implements rule.Request. Where the URL has a RawPath, Echo routes by it, and its parameters are as they were sent, unless its
// RouterConfig says otherwise. Then they are shorter than what was sent, and the route does not make the RawPath of them.
func (r *request) Param(name string) (string, error) {
	v, known := r.c.PathValues().Get(name)
	if !known {
		return "", rule.ErrRoute
	}
	var sent []any
	for _, p := range r.c.PathValues() {
		sent = append(sent, p.Value)
	}
	isRaw := r.R.URL.RawPath != "" && r.c.RouteInfo().Reverse(sent...) == r.R.URL.RawPath
	if plain, err := url.PathUnescape(v); err == nil && isRaw { // the server has refused a path that fails
		v = plain
	}
	return rule.OnceEscaped(v)
}
