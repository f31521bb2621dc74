package fibermw

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// request is what keys are made from, as Fiber's handlers read it. Values are copies: names outlive the
// handler, and Fiber reuses its buffers.
type request struct {
	c     fiber.Ctx
	bound any
}

var _ rule.Request = request{}

// Operation implements rule.Request.
func (r request) Operation() rule.Operation {
	return rule.Operation{Method: string(r.c.Request().Header.Method()), Route: strings.Clone(r.c.Route().Path)}
}

// Bound implements rule.Request.
func (r request) Bound() any { return r.bound }

// Param implements rule.Request. Fiber has parameters as they were sent, unless its Config says otherwise.
func (r request) Param(name string) (string, error) {
	value := strings.Clone(r.c.Params(name))
	if !slices.Contains(r.c.Route().Params, name) {
		return "", rule.ErrRoute
	}
	if plain, err := url.PathUnescape(value); err == nil && !r.c.App().Config().UnescapePath {
		return plain, nil
	}
	return value, nil // "%" stands for itself, as in what the handler gets
}

// Query implements rule.Request. A malformed query has no values: fasthttp and net/http read them differently,
// and a name shall not depend on which framework it came through.
func (r request) Query(name string) []string {
	uri := r.c.Request().URI()
	if _, err := url.ParseQuery(string(uri.QueryString())); err != nil {
		return nil
	}
	return texts(uri.QueryArgs().PeekMulti(name))
}

// Header implements rule.Request.
func (r request) Header(name string) []string { return texts(r.c.Request().Header.PeekAll(name)) }

// errEncoded is for a body that c.Body decodes: it can be another document than what was sent.
var errEncoded = fmt.Errorf("%w: the body has a Content-Encoding", core.ErrInvalid)

// Body implements rule.Request, as it was sent. A stream (Config.StreamRequestBody) of unknown length
// is too large: reading it would not end at maxBody.
func (r request) Body(maxBody int64) ([]byte, error) {
	in := r.c.Request()
	if enc := in.Header.ContentEncoding(); len(enc) > 0 && !strings.EqualFold(string(enc), "identity") {
		return nil, errEncoded
	}
	if length := int64(in.Header.ContentLength()); in.IsBodyStream() && (length < 0 || length > maxBody) {
		return nil, rule.ErrTooLarge
	}
	body := in.Body()
	if int64(len(body)) > maxBody {
		return nil, rule.ErrTooLarge
	}
	return body, nil
}

func texts(values [][]byte) []string {
	copies := make([]string, len(values))
	for i, v := range values {
		copies[i] = string(v)
	}
	return copies
}
