package rule

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

// The errors of a body, which say nothing of what is in it.
var (
	ErrTooLarge = fmt.Errorf("the body: %w", key.ErrTooLarge)
	errBroken   = fmt.Errorf("%w: the body could not be read", core.ErrInvalid)
)

// Request is what names are made from: a request of any framework, with the values that its handlers read.
type Request interface {
	// Operation is the method, and the pattern that the request was routed by, "" if it was not.
	Operation() Operation
	// Param returns a path parameter, unescaped. Its error is ErrRoute if the route does not have it.
	Param(name string) (string, error)
	// Query and Header return all values of a name. Host is among the headers.
	Query(name string) []string
	Header(name string) []string
	// Body returns the body, and leaves it to the handler: also if it fails. A larger one is key.ErrTooLarge.
	Body(maxBody int64) ([]byte, error)
	// Bound is a pointer to what Bind has decoded.
	Bound() any
}

// HTTP is what all requests of net/http have. A framework adds what it knows of the route.
type HTTP struct {
	R       *http.Request
	Decoded any // for Bound

	body   []byte
	peeked bool // body is what the request's body is
}

// Bound implements Request.
func (h *HTTP) Bound() any { return h.Decoded }

// Query implements Request.
func (h *HTTP) Query(name string) []string { return h.R.URL.Query()[name] }

// Unescaped is a path value, but for one that its router has left as it was sent: see OnceEscaped.
func (h *HTTP) Unescaped(v string) (string, error) {
	if raw := h.R.URL.RawPath; raw == "" || !strings.Contains(raw, v) {
		return v, nil
	}
	return OnceEscaped(v)
}

// Header implements Request.
func (h *HTTP) Header(name string) []string {
	if name == "Host" { // which net/http takes out of the header
		return []string{h.R.Host}
	}
	return h.R.Header[name]
}

// Body puts back what it has read. A body that is too large, or that breaks off, is put back too, as
// far as it was read, with the rest behind it.
func (h *HTTP) Body(maxBody int64) ([]byte, error) {
	r := h.R
	if h.peeked {
		return h.body, nil
	}
	if r.ContentLength > maxBody {
		return nil, ErrTooLarge
	}
	if r.Body == nil || r.Body == http.NoBody {
		h.peeked = true
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, min(maxBody, math.MaxInt64-1)+1))
	r.Body = &replay{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	if _, limited := errors.AsType[*http.MaxBytesError](err); limited {
		return nil, ErrTooLarge
	}
	if err != nil {
		return nil, errBroken
	}
	if int64(len(body)) > maxBody {
		return nil, ErrTooLarge
	}
	h.body, h.peeked = body, true
	return body, nil
}

// replay is a body that reads once more what was read from it. It closes the original.
type replay struct {
	io.Reader
	io.Closer
}
