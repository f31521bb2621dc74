// Package reqkey makes lock names from HTTP requests, for all HTTP doors.
package reqkey

import (
	"fmt"

	"github.com/holdfast-go/holdfast/core/adapter"
)

// ErrRoute is what a key's Names returns if a source asks for what the route does not have:
// the request is as it should be, and the program is not.
var ErrRoute = fmt.Errorf("%w: the route does not have it", adapter.ErrMisconfigured)

// Keys is key templates, mostly one, with sources of an HTTP request.
type Keys struct {
	adapter.Key[Request]

	// Constant says that all requests have the same name.
	Constant bool
}

// Parse compiles a template, or several with a space between them. What is wrong with them, a source that HTTP
// doors do not have too, is [core.ErrInvalid]. Of a body, no more than maxBody bytes are looked at.
func Parse(templates string, maxBody int64) (*Keys, error) {
	if err := CheckLiterals(templates); err != nil {
		return nil, fmt.Errorf("key %q: %w", templates, err)
	}
	k := &Keys{Constant: true}
	var err error
	k.Key, err = adapter.NewKey(templates, func(name string) (adapter.Source[Request], error) {
		s, err := parseSource(name)
		k.Constant = false
		return s.source(maxBody), err
	})
	return k, err
}

// Request is what names are made from: a request of any framework, with the values that its handlers
// read. [HTTP] is one of net/http.
type Request interface {
	// Route is the pattern that the request was routed by, "" if it was not. It is for the log.
	Route() string
	// Param returns a path parameter, unescaped, and whether the route has it.
	Param(name string) (value string, known bool)
	// Query and Header return all values of a name. Host is among the headers.
	Query(name string) []string
	Header(name string) []string
	// Body returns the body, and leaves it to the handler: also if it fails. A larger one is key.ErrTooLarge.
	Body(maxBody int64) ([]byte, error)
}
