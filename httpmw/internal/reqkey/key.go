// Package reqkey makes lock names from HTTP requests, for all HTTP doors.
package reqkey

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/core/key"
)

// ErrRoute is what [Key.Name] returns if a source asks for what the route does not have:
// the request is as it should be, and the program is not.
var ErrRoute = errors.New("the route does not have it")

// Keys is key templates, mostly one, with sources of an HTTP request.
type Keys struct {
	all     []parsed
	maxBody int64
}

// parsed is one template.
type parsed struct {
	tmpl    *key.Key
	sources []source
}

// Parse compiles a template, or several with a space between them. What is wrong with them, a source that HTTP
// doors do not have too, is [core.ErrInvalid]. Of a body, no more than maxBody bytes are looked at.
func Parse(keys string, maxBody int64) (*Keys, error) {
	all, err := key.ParseAll(keys)
	if err != nil {
		return nil, err
	}
	k := &Keys{maxBody: maxBody}
	for _, tmpl := range all {
		p := parsed{tmpl: tmpl}
		if err := checkLiterals(tmpl.String()); err != nil {
			return nil, fmt.Errorf("key %q: %w", tmpl, err)
		}
		for _, written := range tmpl.Sources() {
			s, err := parseSource(written.Name)
			if err != nil {
				return nil, fmt.Errorf("key %q: {%s}: %w", tmpl, written.Name, err)
			}
			p.sources = append(p.sources, s)
		}
		k.all = append(k.all, p)
	}
	return k, nil
}

// Constant returns the first template without a source, "" if each has one.
func (k *Keys) Constant() string {
	for _, p := range k.all {
		if len(p.sources) == 0 {
			return p.tmpl.String()
		}
	}
	return ""
}

// FromRoute says whether a name needs something that only a route has.
func (k *Keys) FromRoute() bool {
	return slices.ContainsFunc(k.all, func(p parsed) bool {
		return slices.ContainsFunc(p.sources, func(s source) bool { return s.kind == fromPath })
	})
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

// Names makes the names, one for each template. Its errors are ErrRoute and core.ErrInvalid, and hold
// nothing of the request.
func (k *Keys) Names(r Request) ([]string, error) {
	names := make([]string, len(k.all))
	for i, p := range k.all {
		next := 0
		name, err := p.tmpl.Expand(func(string) (string, error) { // asks once for each source, in order
			s := p.sources[next]
			next++
			return s.value(r, k.maxBody)
		})
		if err != nil {
			return nil, err
		}
		names[i] = name
	}
	return names, nil
}
