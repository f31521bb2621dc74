package httpmw

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

const maxIdempotencyKey = 255

var (
	errNoRepeatKey  = fmt.Errorf("%w: no %s", core.ErrInvalid, IdempotencyHeader)
	errBadRepeatKey = fmt.Errorf("%w: %s: not one value of 1 to %d visible ASCII characters", core.ErrInvalid, IdempotencyHeader, maxIdempotencyKey)
	errNoScope      = fmt.Errorf("%w: the scope is empty: whose key is it?", core.ErrInvalid)
	errLargeBody    = fmt.Errorf("%w: the body is larger than what is looked at", core.ErrInvalid)
)

// idempotencyKey reads the header. The draft has a string of RFC 8941, with quotes; most clients send
// the bare value. Both are the same key.
func idempotencyKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", errNoRepeatKey
	}
	key := strings.TrimSpace(values[0])
	if quoted, ok := strings.CutPrefix(key, `"`); ok {
		inner, closed := strings.CutSuffix(quoted, `"`)
		if !closed {
			return "", errBadRepeatKey
		}
		key = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(inner)
	}
	invalid := strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 || r > 0x7e })
	if len(values) > 1 || key == "" || len(key) > maxIdempotencyKey || invalid {
		return "", errBadRepeatKey
	}
	return key, nil
}

// wholeBody reads the body, and puts it back as far as it was read.
func wholeBody(r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > limit {
		return nil, errLargeBody
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	switch _, limited := errors.AsType[*http.MaxBytesError](err); {
	case limited || int64(len(body)) > limit:
		return nil, errLargeBody
	case err != nil:
		return nil, fmt.Errorf("%w: the body could not be read", core.ErrInvalid)
	}
	return body, nil
}
