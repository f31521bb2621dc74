package reqkey

import (
	"fmt"
	"net/textproto"
	"strings"

	"github.com/holdfast-go/holdfast/core"
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
	fromCookie
	fromForm
	fromBody
	fromMethod
	fromRoute
)

var (
	errKind      = fmt.Errorf("%w: HTTP doors have query, header, cookie, form, body and http", core.ErrInvalid)
	errHTTP      = fmt.Errorf("%w: there are {http:method} and {http:route}", core.ErrInvalid)
	errToken     = fmt.Errorf("%w: no header or cookie can have this name", core.ErrInvalid)
	errAmbiguous = fmt.Errorf("%w: several values that differ", core.ErrInvalid)
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
	case "cookie":
		return source{fromCookie, name}, checkToken(name)
	case "form":
		return source{fromForm, name}, nil
	case "body":
		return source{fromBody, name}, nil
	case "http":
		switch name {
		case "method":
			return source{fromMethod, name}, nil
		case "route":
			return source{fromRoute, name}, nil
		}
		return source{}, errHTTP
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
func (s source) value(x *reading) (string, error) {
	switch s.kind {
	case fromPath:
		v, known := x.Param(s.name)
		if !known {
			return "", ErrRoute
		}
		return v, nil
	case fromQuery:
		return only(x.URL.Query()[s.name])
	case fromHeader:
		if s.name == "Host" { // which net/http takes out of the header
			return x.Host, nil
		}
		return only(x.Header[s.name])
	case fromCookie:
		return x.cookie(s.name)
	case fromForm:
		return x.form(s.name)
	case fromBody:
		return x.json(s.name)
	case fromMethod:
		return x.Method, nil
	default:
		if x.Route == "" {
			return "", ErrRoute
		}
		return x.Route, nil
	}
}

// only refuses values that differ: nobody knows which of them the handler will read.
func only(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return "", errAmbiguous
		}
	}
	return values[0], nil
}

func (x *reading) cookie(name string) (string, error) {
	cookies := x.CookiesNamed(name)
	values := make([]string, len(cookies))
	for i, c := range cookies {
		values[i] = c.Value
	}
	return only(values)
}
