package rule

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
)

var (
	errKind  = errors.New("there are {parameter}, {query:name}, {header:Name} and {body:a.b}")
	errToken = errors.New("no header can have this name")
)

// ErrRoute is for a path parameter that the route does not have.
var ErrRoute = fmt.Errorf("%w: the route does not have it", adapter.ErrMisconfigured)

var errEscaped = fmt.Errorf("%w: it has an escape in it, such as %%41, and handlers may read it in two ways", core.ErrInvalid)

// OnceEscaped refuses a path parameter that has an escape left in it, of a framework that unescapes some paths and not others: to
// its handlers "%41" can be "%41", or "A".
func OnceEscaped(v string) (string, error) {
	if u, err := url.PathUnescape(v); err == nil && u != v {
		return "", errEscaped
	}
	return v, nil
}

// ErrNotJSON is for a body of another type.
var ErrNotJSON = fmt.Errorf("%w: the Content-Type is not application/json, once and in exactly this spelling", core.ErrInvalid)

// sources are those of a request. Whatever is no member of a JSON body is text.
func sources[R Request](maxBody int64) adapter.Sources[R] {
	return func(written string) (adapter.Source[R], error) {
		kind, name, ok := strings.Cut(written, ":")
		switch {
		case !ok:
			return adapter.Text(func(_ context.Context, r R) (string, error) { return r.Param(written) }), nil
		case kind == "query":
			return adapter.Text(func(_ context.Context, r R) (string, error) { return adapter.Only(r.Query(name)) }), nil
		case kind == "header" && strings.ContainsFunc(name, noToken):
			return adapter.Source[R]{}, errToken
		case kind == "header":
			name = textproto.CanonicalMIMEHeaderKey(name)
			return adapter.Text(func(_ context.Context, r R) (string, error) { return adapter.Only(r.Header(name)) }), nil
		case kind == "body":
			return adapter.Typed(func(_ context.Context, r R) (string, error) { return member(r, name, maxBody) }), nil
		}
		return adapter.Source[R]{}, errKind
	}
}

// noToken finds what a template lets through and the name of a header does not; RFC 9110, 5.6.2.
func noToken(r rune) bool { return r >= 0x80 || strings.ContainsRune("@[]", r) }

// IsJSON says of the values of Content-Type that there is one, and that it is application/json in exactly this spelling. With
// any other type, with none or with two, frameworks differ: one reads a form, or the query, and finds another value there.
func IsJSON(types []string) bool {
	if len(types) != 1 {
		return false
	}
	parameters, ok := strings.CutPrefix(types[0], "application/json")
	_, _, err := mime.ParseMediaType(types[0])
	return ok && err == nil && (parameters == "" || strings.ContainsAny(parameters[:1], "; "))
}

// member reads a member of a JSON body.
func member(r Request, path string, maxBody int64) (string, error) {
	if !IsJSON(r.Header("Content-Type")) {
		return "", ErrNotJSON
	}
	body, err := r.Body(maxBody)
	if err != nil {
		return "", err
	}
	if len(body) == 0 {
		return "", key.ErrMissing
	}
	return key.JSONValue(body, path)
}
