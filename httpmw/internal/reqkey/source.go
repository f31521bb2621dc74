package reqkey

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/textproto"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
)

// source is one {source} of a template.
type source struct {
	kind kind
	name string
}

type kind uint8

const (
	fromPath kind = iota
	fromQuery
	fromHeader
	fromBody
)

var (
	errKind  = errors.New("there are {parameter}, {query:name}, {header:Name} and {body:a.b}")
	errToken = errors.New("no header can have this name")
)

// ErrNotJSON is for a body of another type.
var ErrNotJSON = fmt.Errorf("%w: the Content-Type is not application/json, once and in exactly this spelling", core.ErrInvalid)

func parseSource(written string) (source, error) {
	kind, name, ok := strings.Cut(written, ":")
	if !ok {
		return source{fromPath, written}, nil
	}
	switch kind {
	case "query":
		return source{fromQuery, name}, nil
	case "header":
		return source{fromHeader, textproto.CanonicalMIMEHeaderKey(name)}, checkToken(name)
	case "body":
		return source{fromBody, name}, nil
	}
	return source{}, errKind
}

// checkToken refuses what a template lets through and HTTP does not; RFC 9110, 5.6.2.
func checkToken(name string) error {
	for _, r := range name {
		if r >= 0x80 || strings.ContainsRune("@[]", r) {
			return errToken
		}
	}
	return nil
}

// source returns how to read it. Whatever is no member of a JSON body is text.
func (s source) source(maxBody int64) adapter.Source[Request] {
	switch s.kind {
	case fromPath:
		return adapter.Text(func(_ context.Context, r Request) (string, error) {
			v, known := r.Param(s.name)
			if !known {
				return "", ErrRoute
			}
			return v, nil
		})
	case fromQuery:
		return adapter.Text(func(_ context.Context, r Request) (string, error) { return adapter.Only(r.Query(s.name)) })
	case fromHeader:
		return adapter.Text(func(_ context.Context, r Request) (string, error) { return adapter.Only(r.Header(s.name)) })
	default:
		return adapter.Typed(func(_ context.Context, r Request) (string, error) { return member(r, s.name, maxBody) })
	}
}

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
