package httpmw

import (
	"context"
	"net/http"
	"regexp"
	"slices"

	"github.com/holdfast-go/holdfast/httpmw/internal/door"
	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
	"github.com/holdfast-go/holdfast/httpmw/internal/reqkey"
)

// locked is a handler behind a door.
type locked struct {
	Config

	door *door.Door
	next http.Handler
}

func (h *locked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.Skipper != nil && h.Skipper(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	names, fault := h.names(r)
	h.hold(w, r, names, fault, h.next)
}

// hold calls next under the locks of the names, unless there is a fault with them.
func (h *locked) hold(w http.ResponseWriter, r *http.Request, names []string, fault *door.Fault, next http.Handler) {
	if fault == nil {
		fault = h.door.Do(r.Context(), door.Operation{Method: r.Method, Route: r.Pattern}, names, func(ctx context.Context, seen *observe.Response) error {
			inside := r.WithContext(ctx)
			defer door.HandBack(r, inside)
			next.ServeHTTP(seen.Wrap(w), inside)
			return nil
		})
	}
	if fault != nil {
		h.answer(w, r, fault)
	}
}

func (h *locked) names(r *http.Request) ([]string, *door.Fault) {
	if h.KeyFunc != nil {
		return door.Made(h.KeyFunc(r))
	}
	from := &reqkey.HTTP{R: r, Pattern: r.Pattern, PathParam: func(name string) (string, bool) {
		v := r.PathValue(name)
		return v, v != "" || slices.Contains(wildcards(r.Pattern), name)
	}}
	return h.door.Names(r.Context(), from, func() []string { return wildcards(r.Pattern) })
}

func (h *locked) answer(w http.ResponseWriter, r *http.Request, fault *door.Fault) {
	p := ProblemFor(fault)
	if h.ErrorHandler != nil {
		h.ErrorHandler(w, r, p)
		return
	}
	p.ServeHTTP(w, r)
}

// wildcard is a path parameter of a route's pattern: {name} or {name...}, or another router's
// {name:regexp}.
var wildcard = regexp.MustCompile(`\{([^{}:.$]+)(?:\.{3})?(?::|\})`)

func wildcards(pattern string) []string {
	var names []string
	for _, m := range wildcard.FindAllStringSubmatch(pattern, -1) {
		names = append(names, m[1])
	}
	return names
}
