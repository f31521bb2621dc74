package httpmw

import (
	"context"
	"net/http"
	"strings"

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
	name, fault := h.name(r)
	if fault == nil {
		fault = h.door.Do(r, r.Pattern, name, func(ctx context.Context, seen *observe.Response) error {
			inside := r.WithContext(ctx)
			defer door.HandBack(r, inside)
			h.next.ServeHTTP(seen.Wrap(w), inside)
			return nil
		})
	}
	if fault != nil {
		h.answer(w, r, fault)
	}
}

func (h *locked) name(r *http.Request) (string, *door.Fault) {
	if h.KeyFunc != nil {
		return door.Made(h.KeyFunc(r))
	}
	return h.door.Name(reqkey.Request{Request: r, Route: r.Pattern, Param: func(name string) (string, bool) {
		v := r.PathValue(name)
		return v, v != "" || hasWildcard(r.Pattern, name)
	}})
}

func (h *locked) answer(w http.ResponseWriter, r *http.Request, fault *door.Fault) {
	p := ProblemFor(fault)
	if h.ErrorHandler != nil {
		h.ErrorHandler(w, r, p)
		return
	}
	p.ServeHTTP(w, r)
}

// hasWildcard says whether a route's pattern has the path parameter: {name} or {name...},
// or another router's {name:regexp}.
func hasWildcard(pattern, name string) bool {
	for {
		_, rest, found := strings.Cut(pattern, "{"+name)
		if !found {
			return false
		}
		if strings.HasPrefix(rest, "}") || strings.HasPrefix(rest, "...}") || strings.HasPrefix(rest, ":") {
			return true
		}
		pattern = rest
	}
}
