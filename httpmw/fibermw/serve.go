package fibermw

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
)

// run calls the handlers with the lease's context. What stands outside gets its own back.
func run(inside context.Context, c fiber.Ctx, seen *observe.Response, next func() error) error {
	var before fasthttp.ResponseHeader
	c.Response().Header.CopyTo(&before)
	seen.Undo = func() { before.CopyTo(&c.Response().Header) }
	outside := c.Context()      //nolint:contextcheck,nolintlint // to be put back; the linter sees it or not
	c.SetContext(inside)        //nolint:contextcheck,nolintlint // as above
	defer c.SetContext(outside) //nolint:contextcheck,nolintlint // as above
	err := next()
	switch {
	case err != nil:
	case c.RequestCtx().Hijacked():
		seen.Hijacked()
	case answered(c, before.StatusCode()):
		seen.Answered(c.Response().StatusCode())
	}
	return err
}

// answered says whether the handlers have made an answer: a body, or another status than the one before. Nothing of it is sent yet.
func answered(c fiber.Ctx, before int) bool {
	r := c.Response()
	status := r.StatusCode()
	return status != before || status >= http.StatusBadRequest || r.IsBodyStream() || len(r.Body()) > 0
}

// write is the default ErrorHandler, and does what a Problem's ServeHTTP does. Headers of handlers outside stay, such as those of CORS.
func write(c fiber.Ctx, p *httpmw.Problem) error {
	body, _ := json.Marshal(p) // strings and a number: it cannot fail
	c.Response().ResetBody()
	for _, name := range []string{"Etag", "Last-Modified", "Retry-After"} { // the handler's
		c.Response().Header.Del(name)
	}
	c.Set("Content-Type", "application/problem+json")
	c.Set("Cache-Control", "no-store")
	if p.RetryAfter > 0 {
		c.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	return c.Status(p.Status).Send(body)
}
