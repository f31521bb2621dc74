package fibermw

import (
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/httpmw/internal/door"
	"github.com/holdfast-go/holdfast/httpmw/internal/reqkey"
)

// request is what keys are made from, as Fiber's handlers read it. Values are copies: names outlive the
// handler, and Fiber reuses its buffers.
type request struct{ c fiber.Ctx }

var _ reqkey.Request = request{}

func operation(c fiber.Ctx) door.Operation {
	return door.Operation{Method: string(c.Request().Header.Method()), Route: strings.Clone(c.Route().Path)}
}

// Route implements reqkey.Request.
func (r request) Route() string { return strings.Clone(r.c.Route().Path) }

// Param implements reqkey.Request. Fiber has parameters as they were sent, unless its Config says otherwise.
func (r request) Param(name string) (value string, known bool) {
	value, known = strings.Clone(r.c.Params(name)), slices.Contains(r.c.Route().Params, name)
	if r.c.App().Config().UnescapePath {
		return value, known
	}
	if plain, err := url.PathUnescape(value); err == nil {
		return plain, known
	}
	return value, known // "%" stands for itself, as in what the handler gets
}

// Query implements reqkey.Request. A malformed query has no values: fasthttp and net/http read them differently,
// and a name shall not depend on which door it came through.
func (r request) Query(name string) []string {
	uri := r.c.Request().URI()
	if _, err := url.ParseQuery(string(uri.QueryString())); err != nil {
		return nil
	}
	return texts(uri.QueryArgs().PeekMulti(name))
}

// Header implements reqkey.Request.
func (r request) Header(name string) []string { return texts(r.c.Request().Header.PeekAll(name)) }

// Body implements reqkey.Request, as it was sent. A stream (Config.StreamRequestBody) of unknown length
// is too large: reading it would not end at maxBody.
func (r request) Body(maxBody int64) ([]byte, error) {
	in := r.c.Request()
	if length := int64(in.Header.ContentLength()); in.IsBodyStream() && (length < 0 || length > maxBody) {
		return nil, reqkey.ErrTooLarge
	}
	body := in.Body()
	if int64(len(body)) > maxBody {
		return nil, reqkey.ErrTooLarge
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
