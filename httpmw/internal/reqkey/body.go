package reqkey

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

var (
	errTooLarge = fmt.Errorf("%w: the body is larger than what is looked at", core.ErrInvalid)
	errBroken   = fmt.Errorf("%w: the body could not be read", core.ErrInvalid)
	errForm     = fmt.Errorf("%w: the form could not be read", core.ErrInvalid)
	errNotJSON  = fmt.Errorf("%w: the body's type is not JSON", core.ErrInvalid)
)

// peek returns the whole body, and puts it back. A body that is too large, or that breaks
// off, is put back too, as far as it was read, with the rest behind it.
func (x *reading) peek() ([]byte, error) {
	if x.peeked {
		return x.body, nil
	}
	if x.ContentLength > x.maxBody {
		return nil, errTooLarge
	}
	if x.Body == nil || x.Body == http.NoBody {
		x.peeked = true
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(x.Body, x.maxBody+1))
	x.Body = &replay{io.MultiReader(bytes.NewReader(body), x.Body), x.Body}
	if err != nil {
		return nil, errBroken
	}
	if int64(len(body)) > x.maxBody {
		return nil, errTooLarge
	}
	x.body, x.peeked = body, true
	return body, nil
}

// replay is a body that reads once more what was read from it. It closes the original.
type replay struct {
	io.Reader
	io.Closer
}

// json reads a member of the body. It wants a JSON type, or none: the handler of a body that
// says it is a form might read a form in it, and find another value there.
func (x *reading) json(path string) (string, error) {
	if t := x.Header.Get("Content-Type"); t != "" {
		t, _, err := mime.ParseMediaType(t)
		if err != nil || t != "application/json" && !strings.HasSuffix(t, "+json") {
			return "", errNotJSON
		}
	}
	body, err := x.peek()
	if err != nil {
		return "", err
	}
	return key.JSONValue(body, path)
}

// form reads a value of the form, which is in the body or in the query; in both, it has to
// be the same. If somebody has parsed the form already, the handler gets that one, and so
// does the key.
func (x *reading) form(name string) (string, error) {
	multi := strings.HasPrefix(strings.ToLower(x.Header.Get("Content-Type")), "multipart/")
	if x.MultipartForm != nil || x.Form != nil && !multi {
		return only(x.Form[name])
	}
	body, err := x.peek()
	if err != nil {
		return "", err
	}
	// A request of its own, so that net/http parses, by its own rules, and the handler's
	// request is as if nobody had.
	probe := &http.Request{
		Method: x.Method, URL: x.URL, Header: x.Header, Body: io.NopCloser(bytes.NewReader(body)),
	}
	if err := probe.ParseForm(); err != nil {
		return "", errForm
	}
	err = probe.ParseMultipartForm(x.maxBody) // all of it fits: no files are made
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return "", errForm
	}
	return only(probe.Form[name])
}
