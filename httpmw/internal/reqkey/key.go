// Package reqkey makes lock names from HTTP requests, for all HTTP doors.
package reqkey

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/core/key"
)

// ErrRoute is what [Key.Name] returns if a source asks for what the route does not have:
// the request is as it should be, and the program is not.
var ErrRoute = errors.New("the route does not have it")

// Key is a key template with sources of an HTTP request.
type Key struct {
	tmpl    *key.Key
	sources []source
	maxBody int64
}

// Parse compiles a template. What is wrong with it, a source that HTTP doors do not have
// too, is [core.ErrInvalid]. Of a body, no more than maxBody bytes are looked at.
func Parse(tmpl string, maxBody int64) (*Key, error) {
	parsed, err := key.Parse(tmpl)
	if err != nil {
		return nil, err
	}
	k := &Key{tmpl: parsed, maxBody: maxBody}
	for _, written := range parsed.Sources() {
		s, err := parseSource(written)
		if err != nil {
			return nil, fmt.Errorf("key %q: {%s}: %w", tmpl, written, err)
		}
		k.sources = append(k.sources, s)
	}
	return k, nil
}

// Request is what a name is made from.
type Request struct {
	*http.Request

	Route string // the pattern that the request was routed by, "" if it was not
	// Param returns a path parameter, unescaped, and whether the route has it.
	Param func(name string) (value string, known bool)
}

// Name makes the name. If it reads the body, it puts back what it has read: also if it
// fails. Its errors are ErrRoute and core.ErrInvalid, and hold nothing of the request.
func (k *Key) Name(r Request) (string, error) {
	x := reading{Request: r, maxBody: k.maxBody}
	next := 0
	return k.tmpl.Expand(func(string) (string, error) { // asks once for each source, in order
		s := k.sources[next]
		next++
		return s.value(&x)
	})
}

// reading is one request being read.
type reading struct {
	Request

	maxBody int64
	body    []byte
	peeked  bool // body is what the request's body is
}
