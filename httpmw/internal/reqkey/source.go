package reqkey

import (
	"fmt"
	"mime"
	"net/textproto"
	"strings"

	"github.com/holdfast-go/holdfast/core"
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
	errKind  = fmt.Errorf("%w: HTTP middleware has query, header and body", core.ErrInvalid)
	errToken = fmt.Errorf("%w: no header can have this name", core.ErrInvalid)

	errNotJSON = fmt.Errorf("%w: the body's type is not JSON", core.ErrInvalid)
)

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

// value returns "" if the request does not have it.
func (s source) value(r Request, maxBody int64) (string, error) {
	switch s.kind {
	case fromPath:
		v, known := r.Param(s.name)
		if !known {
			return "", ErrRoute
		}
		return v, nil
	case fromQuery:
		return only(r.Query(s.name))
	case fromHeader:
		return only(r.Header(s.name))
	default:
		return member(r, s.name, maxBody)
	}
}

// only refuses values that differ: nobody knows which of them the handler will read.
func only(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return "", key.ErrAmbiguous
		}
	}
	return values[0], nil
}

// member reads a member of a JSON body. It wants a JSON type, or none: the handler of a body that
// says it is a form might read a form in it, and find another value there.
func member(r Request, path string, maxBody int64) (string, error) {
	t, err := only(r.Header("Content-Type"))
	if err != nil {
		return "", errNotJSON
	}
	if t != "" {
		t, _, err := mime.ParseMediaType(t)
		if err != nil || t != "application/json" && !strings.HasSuffix(t, "+json") {
			return "", errNotJSON
		}
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
