package idempotency

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

const maxIdempotencyKey = 255

var (
	errNoRepeatKey  = fmt.Errorf("%w: no %s", core.ErrInvalid, Header)
	errBadRepeatKey = fmt.Errorf("%w: %s: not one value of 1 to %d visible ASCII characters", core.ErrInvalid, Header, maxIdempotencyKey)
	errNoScope      = fmt.Errorf("%w: the scope is empty: whose key is it?", core.ErrInvalid)
	errRead         = fmt.Errorf("%w: middleware outside has read the body: it has to put it back", adapter.ErrMisconfigured)
)

// idempotencyKey reads the header. The draft has a string of RFC 8941, with quotes; most clients send
// the bare value. Both are the same key.
func idempotencyKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", errNoRepeatKey
	}
	sent := strings.TrimSpace(values[0])
	if quoted, ok := strings.CutPrefix(sent, `"`); ok {
		inner, closed := strings.CutSuffix(quoted, `"`)
		if !closed {
			return "", errBadRepeatKey
		}
		sent = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(inner)
	}
	invalid := strings.ContainsFunc(sent, func(r rune) bool { return r < 0x20 || r > 0x7e })
	if len(values) > 1 || sent == "" || len(sent) > maxIdempotencyKey || invalid {
		return "", errBadRepeatKey
	}
	return sent, nil
}

// overrides are headers that middleware takes a request's method from, inside or outside.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// fingerprint is that of what the client asked for, before a router or [http.StripPrefix] has rewritten it.
// The body is put back as far as it was read.
func fingerprint(r *http.Request, limit int64) (asked string, body []byte, err error) {
	if body, err = (&rule.HTTP{R: r}).Body(limit); err != nil {
		return "", nil, err
	}
	said := r.ContentLength > 0 || r.ContentLength < 0 && r.Header.Get("Content-Type") != "" // there was a body, perhaps in chunks
	if said && len(body) == 0 {
		return "", nil, errRead
	}
	parts := []string{r.Method, r.Host, cmp.Or(r.RequestURI, r.URL.RequestURI()), r.Header.Get("Content-Type"), string(body)}
	for _, name := range overrides {
		parts = append(parts, r.Header.Get(name))
	}
	return hash(parts...), body, nil
}
