package fibermw

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
)

// serve calls next under the lock.
func serve(l *lock, c fiber.Ctx, bound any, next func() error) error {
	var before fasthttp.ResponseHeader
	c.Response().Header.CopyTo(&before)
	return l.Serve(c.Context(), request{c, bound}, next, func(ctx context.Context, seen *observe.Response) error {
		seen.Undo = func() { before.CopyTo(&c.Response().Header) }
		err := run(ctx, c, next)
		if err == nil && answered(c, before.StatusCode()) {
			seen.Answered(c.Response().StatusCode())
		}
		return err
	})
}

// run calls the handlers with the lease's context. What stands outside gets its own back.
func run(inside context.Context, c fiber.Ctx, next func() error) error {
	outside := c.Context()      //nolint:contextcheck,nolintlint // to be put back; the linter sees it or not
	c.SetContext(inside)        //nolint:contextcheck,nolintlint // as above
	defer c.SetContext(outside) //nolint:contextcheck,nolintlint // as above
	return next()
}

// answered says whether the handlers have made an answer: a body, or another status than the one before. Nothing of it is sent yet.
func answered(c fiber.Ctx, before int) bool {
	r := c.Response()
	status := r.StatusCode()
	return status != before || status >= http.StatusBadRequest || r.IsBodyStream() || len(r.Body()) > 0
}

// write is the default ErrorHandler. Headers of handlers outside stay, such as those of CORS.
func write(c fiber.Ctx, p *httpmw.Problem) error {
	c.Response().ResetBody()
	for _, name := range []string{"Etag", "Last-Modified", "Retry-After"} { // the handler's: p's writer has its own header
		c.Response().Header.Del(name)
	}
	p.ServeHTTP(&answer{c: c, header: make(http.Header)}, nil)
	return nil
}

// answer writes a problem to Fiber's response.
type answer struct {
	c      fiber.Ctx
	header http.Header
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	for name, values := range a.header {
		if name == "Content-Length" {
			continue // which fasthttp counts itself
		}
		for _, v := range values {
			a.c.Set(name, v)
		}
	}
	a.c.Status(status)
}

func (a *answer) Write(p []byte) (int, error) { return a.c.Write(p) }
